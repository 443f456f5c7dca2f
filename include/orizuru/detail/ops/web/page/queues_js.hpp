// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The list of all queues, and of all workers.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view queues_js = R"js(
// The first page: all queues in one table. And the page of all workers.

import {get} from './api.js';
import {draw, duration, el, fill, fillRows, line, number, sparkline} from './elements.js';

export const PLACES = {
    waiting: 'Waiting', held: 'In hand', scheduled: 'Scheduled', rejected: 'Rejected', dead: 'Dead',
};

const LONG_AGO = 60_000; // a queue whose oldest message has waited so long is in trouble
const OVERDUE = 10_000;

// The five large numbers.
export function numbers() {
    const values = Object.fromEntries(Object.keys(PLACES).map(place => [place, el('dd')]));
    const node = el('dl', {class: 'numbers'}, ...Object.entries(PLACES).map(
        ([place, name]) => el('div', {}, el('dt', {}, name), values[place])));
    const update = queues => {
        for (const place of Object.keys(PLACES)) {
            const sum = queues.reduce((sum, queue) => sum + queue[place], 0);
            fill(values[place], number(sum), sum === 0 ? 'zero' : place === 'dead' ? 'bad' : '');
        }
    };
    return {node, update};
}

// What is wrong with a queue, beside its name.
export function tags(queue) {
    const idle = queue.waiting > 0 && queue.consumers === 0 && !queue.paused;
    return [queue.paused && 'paused', idle && 'no workers', queue.error && line(queue.error)]
        .filter(Boolean).join(' · ');
}

export function pauseButton(app, key) {
    const button = el('button', {onclick: () => {
        app.step(button, `${button.dataset.step}?queue=${key}`);
    }});
    const update = queue => {
        button.dataset.step = queue.paused ? 'resume' : 'pause';
        fill(button, queue.paused ? 'Resume' : 'Pause');
        button.hidden = !app.writes;
    };
    return {node: button, update};
}

function count(cell, value, style = '') {
    fill(cell, number(value), value === 0 ? 'zero' : style);
}

function makeRow(app, queue) {
    const row = el('tr');
    const name = el('a', {href: `#/queue/${queue.key}/waiting`, title: line(queue.name)},
        el('bdi', {}, line(queue.name)));
    row.tag = el('span', {class: 'tag warn'});
    row.spark = sparkline();
    row.pause = pauseButton(app, queue.key);
    row.numbers = Object.fromEntries(['waiting', 'oldest', 'held', 'scheduled', 'rejected', 'dead'].map(
        column => [column, el('td', {class: HIDING[column]})]));
    row.append(el('td', {class: 'text name'}, el('span', {}, name, row.tag)),
        ...Object.values(row.numbers), el('td', {class: 'spark'}, row.spark),
        el('td', {class: 'step'}, row.pause.node));
    return row;
}

const HIDING = {oldest: 'rare', held: 'rare', scheduled: 'rarer', rejected: 'rarer'}; // on narrow screens

function updateRow(row, queue, history) {
    const cells = row.numbers;
    const wait = queue.oldest && queue.now ? queue.now - queue.oldest : null;
    const late = queue.nextDue && queue.now ? queue.now - queue.nextDue : 0;
    fill(row.tag, tags(queue));
    count(cells.waiting, queue.waiting);
    fill(cells.oldest, wait === null ? '–' : duration(wait),
        wait === null ? 'zero' : wait > LONG_AGO ? 'warn' : '');
    count(cells.held, queue.held);
    count(cells.scheduled, queue.scheduled, late > OVERDUE ? 'warn' : '');
    cells.scheduled.title = late > OVERDUE ? `the first is ${duration(late)} late: no scheduler runs` : '';
    count(cells.rejected, queue.rejected);
    count(cells.dead, queue.dead, 'bad');
    row.pause.update(queue);
    draw(row.spark, [...history.queues[queue.key] ?? [], queue.waiting], history.most + 1);
}

function head(...columns) {
    return el('thead', {}, el('tr', {}, ...columns.map(
        ([name, style]) => el('th', {class: style, scope: 'col'}, name))));
}

export function queuesPage(app) {
    const sums = numbers();
    const body = el('tbody');
    const table = el('table', {}, head(['Queue', 'text name'], ['Waiting', 'count'], ['Oldest', HIDING.oldest],
        ['In hand', HIDING.held], ['Scheduled', HIDING.scheduled], ['Rejected', HIDING.rejected],
        ['Dead', 'count'],
        ['Waiting, last hour', 'spark'], ['', 'step']), body);
    const none = el('p', {class: 'empty', hidden: ''}, 'No worker has served a queue here yet.');
    const other = el('input', {placeholder: 'Another queue', 'aria-label': 'Name of another queue'});
    const open = el('form', {class: 'row', onsubmit: event => {
        event.preventDefault();
        location.hash = `#/queue/${encodeURIComponent(other.value)}/waiting`;
    }}, other, el('button', {}, 'Open'));
    let history = {queues: {}, most: 120};
    let asked = 0;

    const update = async state => {
        if (Date.now() - asked > Math.min(history.step ?? 0, 30_000)) {
            asked = Date.now();
            history = await get('history');
        }
        sums.update(state.queues);
        none.hidden = state.queues.length > 0 || state.age === null;
        table.hidden = state.queues.length === 0;
        fillRows(body, state.queues, queue => makeRow(app, queue),
            (row, queue) => updateRow(row, queue, history));
    };
    return {title: 'Queues', nodes: [sums.node, table, none, open], update};
}

// The table of workers of a queue, or of all.
export function workersTable(withQueue) {
    const body = el('tbody');
    const table = el('table', {}, head(['Worker', 'text'], ...withQueue ? [['Queue', 'text']] : [],
        ['In hand'], ['Steps', 'rare'], ['Lease left']), body);
    const none = el('p', {class: 'empty', hidden: ''}, 'No worker is registered.');
    const update = workers => {
        none.hidden = workers.length > 0;
        table.hidden = workers.length === 0;
        const items = workers.map(worker => ({...worker, key: `${worker.key} ${worker.id}`}));
        fillRows(body, items, () => el('tr', {}, el('td', {class: 'text'}),
            ...withQueue ? [el('td', {class: 'text'})] : [], el('td'), el('td', {class: 'rare'}), el('td')),
        (row, worker) => {
            const cells = [...row.children];
            fill(cells.shift(), line(worker.id));
            row.firstChild.title = line(worker.id);
            if (withQueue) {
                fill(cells.shift(), line(worker.queue));
            }
            count(cells[0], worker.held);
            count(cells[1], worker.steps);
            const gone = worker.leaseLeft === null;
            fill(cells[2], gone ? 'not heard' : duration(worker.leaseLeft), gone ? 'warn' : '');
        });
    };
    return {nodes: [table, none], update};
}

export function workersPage() {
    const table = workersTable(true);
    return {
        title: 'Workers',
        nodes: [el('div', {class: 'heading'}, el('h1', {}, 'Workers')), ...table.nodes],
        update: async () => table.update((await get('workers')).workers),
    };
}
)js";

} // namespace orizuru::detail::web
