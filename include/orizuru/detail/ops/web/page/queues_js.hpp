// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The list of all queues, and of all workers.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view queues_js = R"js(
// The first page: all queues in one table. And the page of all workers.

import {get} from './api.js';
import {draw, duration, el, fill, fillRows, head, line, number, sparkline} from './elements.js';

// The latest points of the sparklines that are shown: asked for once for each step.
let history = {queues: {}, most: 120, step: 0, lastStep: null};
let asked = {query: null, at: 0};

// Returns how many jobs a second are done in all queues that the query chooses; null: not known.
export async function renewHistory(query) {
    if (asked.query !== query || Date.now() - asked.at >= Math.min(history.step, 30_000)) {
        asked = {query, at: Date.now()};
        history = await get(`history${query}`);
    }
    return history.lastStep === null ? null : history.lastStep * 1000 / history.step;
}

function doneOf(queue) {
    return history.queues[queue.key]?.done ?? [];
}

export const PLACES = {
    waiting: 'Waiting', held: 'In hand', scheduled: 'Scheduled', rejected: 'Rejected',
    suspected: 'Suspected', dead: 'Dead',
};

const LONG_AGO = 60_000; // a queue whose oldest message has waited so long is in trouble
const OVERDUE = 10_000;
const MANY = 0.1; // of all attempts

// The five large numbers.
export function numbers() {
    const names = {waiting: 'Waiting', held: 'In hand', scheduled: 'Scheduled', dead: 'Dead',
        rate: 'Done per second'};
    const values = Object.fromEntries(Object.keys(names).map(name => [name, el('dd')]));
    const node = el('dl', {class: 'numbers'}, ...Object.entries(names).map(
        ([name, text]) => el('div', {}, el('dt', {}, text), values[name])));
    const update = (sums, rate) => {
        for (const place of ['waiting', 'held', 'scheduled', 'dead']) {
            fill(values[place], number(sums[place]), sums[place] === 0 ? 'zero' : place === 'dead' ? 'bad' : '');
        }
        if (sums.behind > 0) {
            fill(values.waiting, withBehind(sums));
        }
        values.waiting.title = behindTitle(sums);
        fill(values.rate, rate === null ? '–' : number(rate < 10 ? Math.round(rate * 10) / 10
            : Math.round(rate)), !rate ? 'zero' : '');
    };
    return {node, update};
}

// Those that wait, and those behind others of their keys.
function withBehind({waiting, behind}) {
    return `${number(waiting)} + ${number(behind)}`;
}

function behindTitle({behind}) {
    return behind > 0 ? `${number(behind)} wait behind others of their keys` : '';
}

// Labels what is wrong with a queue, beside its name.
export function tags(queue) {
    const idle = queue.waiting + queue.suspected > 0 && queue.consumers === queue.unheard && !queue.paused;
    return [queue.paused && 'paused', idle && 'no workers',
        queue.suspected > 0 && `${number(queue.suspected)} suspected`,
        {slot: 'waits for a slot', permit: 'waits for its rate'}[queue.waitsFor], queue.error && line(queue.error)]
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
    row.numbers = Object.fromEntries(['waiting', 'oldest', 'held', 'scheduled', 'dead', 'failed'].map(
        column => [column, el('td', {class: HIDING[column]})]));
    row.append(el('td', {class: 'text name'}, el('span', {}, name, row.tag)),
        ...Object.values(row.numbers), el('td', {class: 'spark'}, row.spark),
        el('td', {class: 'step'}, row.pause.node));
    return row;
}

const HIDING = {oldest: 'rare', held: 'rare', scheduled: 'rarer', failed: 'rarer'}; // on narrow screens

function updateRow(row, queue) {
    const cells = row.numbers;
    const wait = queue.oldest && queue.now ? queue.now - queue.oldest : null;
    const late = queue.nextDue && queue.now ? queue.now - queue.nextDue : 0;
    fill(row.tag, tags(queue));
    count(cells.waiting, queue.waiting);
    if (queue.behind > 0) {
        fill(cells.waiting, withBehind(queue));
    }
    cells.waiting.title = behindTitle(queue);
    fill(cells.oldest, wait === null ? '–' : duration(wait),
        wait === null ? 'zero' : wait > LONG_AGO ? 'warn' : '');
    count(cells.held, queue.held);
    count(cells.scheduled, queue.scheduled, late > OVERDUE ? 'warn' : '');
    cells.scheduled.title = late > OVERDUE ? `the first is ${duration(late)} late: no scheduler runs` : '';
    count(cells.dead, queue.dead, 'bad');
    const failed = history.queues[queue.key]?.failed ?? null;
    fill(cells.failed, failed === null ? '–' : `${(100 * failed).toFixed(1)} %`,
        failed === null || failed === 0 ? 'zero' : failed > MANY ? 'bad' : '');
    row.pause.update(queue);
    draw(row.spark, doneOf(queue), history.most);
}

const PAGE = 50; // as the server has it
const MANY_QUEUES = 10; // so many need no filter

// The filter is kept in the address, without a new page for each letter.
export function queuesPage(app, filter, first) {
    const sums = numbers();
    const body = el('tbody');
    const table = el('table', {}, head(['Queue', 'text name'], ['Waiting', 'count'], ['Oldest', HIDING.oldest],
        ['In hand', HIDING.held], ['Scheduled', HIDING.scheduled], ['Dead', 'count'],
        ['Failed', HIDING.failed], ['Done, last hour', 'spark'], ['', 'step']), body);
    const period = table.querySelector('th.spark');
    const none = el('p', {class: 'empty', hidden: ''});
    const other = el('input', {placeholder: 'Another queue', 'aria-label': 'Name of another queue'});
    const open = el('form', {class: 'row', onsubmit: event => {
        event.preventDefault();
        location.hash = `#/queue/${encodeURIComponent(other.value)}/waiting`;
    }}, other, el('button', {}, 'Open'));

    const query = () => filter || first ? `?filter=${encodeURIComponent(filter)}&first=${first}` : '';
    const turn = to => {
        first = Math.max(0, to);
        const route = filter || first ? `#/queues/${encodeURIComponent(filter)}/${first}` : '#/';
        window.history.replaceState(null, '', route);
        scrollTo(0, 0);
        app.refresh();
    };
    let typed;
    const part = el('input', {type: 'search', placeholder: 'Queues with this in their names',
        'aria-label': 'A part of the names of queues', value: filter, oninput: () => {
            clearTimeout(typed);
            typed = setTimeout(() => {
                filter = part.value;
                turn(0);
            }, 150);
        }});
    const filtering = el('form', {class: 'row', onsubmit: event => event.preventDefault()}, part);
    const back = el('button', {onclick: () => turn(first - PAGE)}, '← Back');
    const range = el('span', {class: 'quiet'});
    const on = el('button', {onclick: () => turn(first + PAGE)}, 'More →');
    const pages = el('div', {class: 'row'}, back, range, on);

    const update = async state => {
        const rate = await renewHistory(query());
        const hour = history.most * history.step;
        fill(period, `Done, last ${hour === 3_600_000 ? 'hour' : duration(hour)}`);
        sums.update(state.sums, rate);
        filtering.hidden = state.all <= MANY_QUEUES && filter === '';
        fill(none, filter ? 'No queue has this in its name.' : 'No worker has served a queue here yet.');
        none.hidden = state.queues.length > 0 || state.age === null;
        table.hidden = state.queues.length === 0;
        fillRows(body, state.queues, queue => makeRow(app, queue),
            updateRow);
        const end = state.first + state.queues.length;
        pages.hidden = state.first === 0 && end === state.count;
        back.hidden = state.first === 0;
        on.hidden = end === state.count;
        fill(range, `${number(state.first + 1)} to ${number(end)} of ${number(state.count)}`);
    };
    return {title: 'Queues', nodes: [sums.node, filtering, table, none, pages, open], query, update};
}

// The table of workers of a queue, or of all.
export function workersTable(withQueue) {
    const body = el('tbody');
    const table = el('table', {}, head(['Worker', 'text'], ...withQueue ? [['Queue', 'text']] : [],
        ['In hand'], ['Running', 'rare'], ['Done', 'rare'], ['Lease left']), body);
    const none = el('p', {class: 'empty', hidden: ''}, 'No worker is registered.');
    const further = el('p', {class: 'quiet', hidden: ''}, 'There are more: each queue shows its own.');
    const update = ({workers, more}) => {
        none.hidden = workers.length > 0;
        further.hidden = !more;
        table.hidden = workers.length === 0;
        const items = workers.map(worker => ({...worker, key: `${worker.key} ${worker.id}`}));
        fillRows(body, items, () => el('tr', {}, el('td', {class: 'text'}),
            ...withQueue ? [el('td', {class: 'text'})] : [], el('td'), el('td', {class: 'rare'}),
            el('td', {class: 'rare'}), el('td')),
        (row, worker) => {
            const cells = [...row.children];
            fill(cells.shift(), line(worker.id));
            row.firstChild.title = line(worker.id);
            if (withQueue) {
                fill(cells.shift(), line(worker.queue));
            }
            count(cells[0], worker.held);
            const told = worker.done !== null;
            fill(cells[1], told ? `${worker.running} of ${worker.threads}` : '–', told ? '' : 'zero');
            fill(cells[2], told ? number(worker.done) : '–', told ? '' : 'zero');
            const gone = worker.leaseLeft === null;
            fill(cells[3], gone ? 'not heard' : duration(worker.leaseLeft), gone ? 'warn' : '');
        });
    };
    return {nodes: [table, none, further], update};
}

export function workersPage() {
    const table = workersTable(true);
    return {
        title: 'Workers',
        nodes: [el('div', {class: 'heading'}, el('h1', {}, 'Workers')), ...table.nodes],
        query: () => '?most=0',
        update: async () => table.update(await get('workers')),
    };
}
)js";

} // namespace orizuru::detail::web
