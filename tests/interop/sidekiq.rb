# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

# Sidekiq's own client and server. usage: sidekiq.rb SOCKET push COUNT | run COUNT

require "sidekiq"
require "sidekiq/cli"
require "sidekiq/launcher"

SOCKET, ROLE = ARGV
COUNT = ARGV[2].to_i

Sidekiq.logger.level = Logger::ERROR
Redis.silence_deprecations = true
Sidekiq.redis = {url: "unix://#{SOCKET}", size: 15}
DONE = Thread::Queue.new

class Handler
  include Sidekiq::Worker
  sidekiq_options queue: "default", retry: false

  def perform(number) = DONE << number
end

if ROLE == "push"
  COUNT.times { |number| Handler.perform_async(number) }
else
  Sidekiq::Launcher.new(Sidekiq.options.merge(queues: ["default"], concurrency: 5)).run
  puts COUNT.times.map { DONE.pop }.sort
  $stdout.flush
  exit!(true)
end
