# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

#: name = "Sidekiq"
#: server = "redis"
#: needs.command.redis-server = "redis-server"
#: needs.command.ruby = "ruby"
#: needs.ruby.sidekiq = "ruby-sidekiq"
#: note = "at most once: a job is off the list before it runs; JSON with metadata"
#:
#: [modes.single]
#: settings = "perform_async; concurrency 10"
#: count = 10_000
#:
#: [modes.bulk]
#: settings = "perform_bulk 1000; concurrency 10"
#: count = 20_000

require "sidekiq"
require "sidekiq/cli"
require "sidekiq/launcher"

ROLE, MODE, ADDRESS, QUEUE = ARGV
COUNT, RATE = ARGV[4, 2].map(&:to_i)
BATCH = MODE == "single" || RATE > 0 ? 1 : 1000

$stdout.sync = true
Sidekiq.logger.level = Logger::ERROR
Redis.silence_deprecations = true
Sidekiq.redis = {url: "unix://#{ADDRESS}", size: 15}

def nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

# Counts what was handled, from the first message on; the handlers are ten threads.
class Tally
  def initialize
    @lock, @count, @sum, @ages = Mutex.new, 0, 0, []
  end

  def handle(id, name)
    @lock.synchronize do
      @begin = nanoseconds if @count == 0
      @count += 1
      @sum += id
      @ages << (nanoseconds - name.to_i(16)) / 1000.0 if RATE > 0
      done if @count == COUNT
    end
  end

  def done
    seconds = (nanoseconds - @begin) / 1e9
    ages = @ages.sort
    percentiles = [50, 99].map { |percent| ages[ages.size * percent / 100] || 0 }
    puts ["done", @count, @sum, seconds, *percentiles].join(" ")
  end
end

TALLY = Tally.new

class Handler
  include Sidekiq::Worker
  sidekiq_options queue: QUEUE, retry: false

  def perform(id, name) = TALLY.handle(id, name)
end

def produce
  Sidekiq.redis(&:ping)
  puts "ready"
  $stdin.gets
  start = nanoseconds
  (0...COUNT).each_slice(BATCH) do |ids|
    name = "sixteen letters."
    if RATE > 0
      sleep [0, (start - nanoseconds) / 1e9 + ids[0].fdiv(RATE)].max
      name = nanoseconds.to_s(16).rjust(16, "0")
    end
    if BATCH == 1
      Handler.perform_async(ids[0], name)
    else
      Handler.perform_bulk(ids.map { |id| [id, name] })
    end
  end
  puts ["done", COUNT, COUNT * (COUNT - 1) / 2, (nanoseconds - start) / 1e9, 0, 0].join(" ")
end

if ROLE == "produce"
  produce
else
  Sidekiq::Launcher.new(Sidekiq.options.merge(queues: [QUEUE], concurrency: 10)).run
  puts "ready"
end
$stdin.gets
exit!
