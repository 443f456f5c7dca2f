// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The side of the Node programs in the talk with `run`, as README.md has it.

const readline = require("node:readline");
const { setTimeout: sleep } = require("node:timers/promises");

const [role, mode, address, queue, count, rate] = process.argv.slice(2);
const task = { role, mode, address, queue, count: Number(count), rate: Number(rate) };

const say = (...words) => console.log(...words);
const seconds = () => Number(process.hrtime.bigint()) / 1e9;

/** Pushes ids and names, `batch` of them with one call; one by one when there is a rate. */
async function produce(push, batch) {
    const input = readline.createInterface({ input: process.stdin });
    input.on("close", () => process.exit(0));
    say("ready");
    await new Promise((go) => input.once("line", go));
    const begin = seconds();
    for (let id = 0; id < task.count; ) {
        let name = "sixteen letters.";
        if (task.rate) {
            await sleep(Math.max(0, (begin + id / task.rate - seconds()) * 1000));
            name = process.hrtime.bigint().toString(16).padStart(16, "0");
        }
        const messages = [];
        do {
            messages.push({ id: id++, name });
        } while (!task.rate && messages.length < batch && id < task.count);
        await push(messages);
    }
    say("done", task.count, (task.count * (task.count - 1)) / 2, seconds() - begin, 0, 0);
}

/** Counts what was handled, from the first message on; `handle` tells whether it was the last. */
class Tally {
    count = 0;
    sum = 0;
    ages = [];

    handle({ id, name }) {
        if (this.count === 0) {
            this.begin = seconds();
        }
        this.count += 1;
        this.sum += id;
        if (task.rate) {
            this.ages.push(Number(process.hrtime.bigint() - BigInt("0x" + name)) / 1000);
        }
        return this.count === task.count;
    }

    done() {
        const ages = this.ages.sort((a, b) => a - b);
        const percentile = (percent) => ages[Math.floor((ages.length * percent) / 100)] ?? 0;
        say("done", this.count, this.sum, seconds() - this.begin, percentile(50), percentile(99));
    }
}

function endWithStdin() {
    process.stdin.on("end", () => process.exit(0)).resume();
}

module.exports = { task, produce, Tally, say, endWithStdin };
