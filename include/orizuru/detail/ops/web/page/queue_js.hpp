// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The page of one queue.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view queue_js = R"js(
// One queue: its numbers, and a tab for each place and for its workers.

import {get} from './api.js';
import {bars, confirming, decoded, duration, el, fill, fillRows, line, moment, number, size} from './elements.js';
import {openMessage} from './message.js';
import {numbers, pauseButton, PLACES, renewHistory, tags, workersTable} from './queues.js';

const PAGE = 50;
const TIMES = {waiting: 'Enqueued', held: 'Enqueued', scheduled: 'Due', rejected: 'Enqueued', dead: 'Died'};
const NOTES = {held: 'Worker', dead: 'Reason'};

// When it was enqueued, is due, or died, seen from now.
function when(message, now) {
    const time = message.time ?? message.job?.enqueuedAt ?? null;
    if (time === null) {
        return ['–', 'zero', ''];
    }
    const text = time > now ? `in ${duration(time - now)}` : `${duration(now - time)} ago`;
    return [text, '', moment(time)];
}

// Asks where a job is, and opens it.
function finder(app, key) {
    const job = el('input', {placeholder: 'Find a job by its id', 'aria-label': 'Id of a job', required: ''});
    const said = el('span', {class: 'warn', role: 'status'});
    return el('form', {class: 'row', onsubmit: async event => {
        event.preventDefault();
        try {
            const {messages} = await get(`find?queue=${key}&job=${encodeURIComponent(job.value.trim())}`);
            fill(said, messages.length ? '' : 'It is in none of the places.', 'warn');
            if (messages.length) {
                openMessage(app, messages[0]);
            }
        } catch (error) {
            fill(said, line(error.message), 'bad');
        }
    }}, job, el('button', {}, 'Find'), said);
}

// Removes all dead messages, and asks before.
function clearer(app, key) {
    const buttons = el('div', {class: 'row'});
    const clear = el('button', {onclick: () => confirming(buttons, 'Remove all dead messages for ever?',
        'Remove all', () => app.step(clear, `clear?queue=${key}&place=dead`))}, 'Remove all');
    buttons.append(clear);
    return buttons;
}

// A month's jobs as bars, if workers have reported any.
function daysOf(key) {
    const node = el('div', {class: 'days', hidden: ''});
    let asked = 0;
    const update = async () => {
        if (Date.now() - asked < 60_000) {
            return;
        }
        asked = Date.now();
        const {days} = await get(`days?queue=${key}`);
        node.hidden = !days.some(day => day.done + day.failed > 0);
        node.replaceChildren(bars(days), el('p', {class: 'quiet'}, `Jobs done in ${days.length} days, by UTC`));
    };
    return {node, update};
}

function messagesTable(app, key, place, first) {
    const body = el('tbody');
    const table = el('table', {class: 'messages'}, el('thead', {}, el('tr', {},
        el('th', {class: 'text', scope: 'col'}, 'Message'),
        el('th', {class: 'text rare', scope: 'col'}, NOTES[place] ?? 'Last error'),
        el('th', {class: 'rarer', scope: 'col'}, 'Try'),
        el('th', {class: 'rarer', scope: 'col'}, 'Size'),
        el('th', {scope: 'col'}, TIMES[place]))), body);
    const none = el('p', {class: 'empty', hidden: ''}, 'Nothing here.');
    const to = at => `#/queue/${key}/${place}/${at}`;
    const back = el('a', {href: to(Math.max(0, first - PAGE)), hidden: first === 0 && ''}, '← Back');
    const range = el('span', {class: 'quiet'});
    const on = el('a', {href: to(first + PAGE)}, 'More →');
    const pages = el('div', {class: 'row'}, back, range, on);
    const clear = place === 'dead' ? clearer(app, key) : el('span');
    const query = `messages?queue=${key}&place=${place}&first=${first}`;

    const make = () => {
        const row = el('tr', {tabindex: 0, onclick: () => openMessage(app, row.message),
            onkeydown: event => event.key === 'Enter' && openMessage(app, row.message)});
        row.append(el('td', {class: 'text'}), el('td', {class: 'text rare quiet'}),
            el('td', {class: 'rarer'}), el('td', {class: 'rarer'}), el('td'));
        return row;
    };
    const update = (row, message) => {
        row.message = message;
        const [text, note, attempt, bytes, time] = row.children;
        fill(text, line(message.preview || message.job?.id || '(payload not shown)'));
        fill(note, line(message.consumer || message.reason || message.job?.lastError || ''));
        fill(attempt, message.job ? number(message.job.attempt) : '–', message.job ? '' : 'zero');
        fill(bytes, size(message.size));
        const [shown, style, title] = when(message, Date.now());
        fill(time, shown, style);
        time.title = title;
    };
    return {
        nodes: [clear, table, none, pages],
        update: async () => {
            const {messages, more} = await get(query);
            const seen = {};
            for (const message of messages) { // equal ones have one id
                seen[message.id] = (seen[message.id] ?? 0) + 1;
                message.key = `${message.id} ${seen[message.id]}`;
            }
            fillRows(body, messages, make, update);
            table.hidden = messages.length === 0;
            none.hidden = messages.length > 0;
            clear.hidden = !app.writes || messages.length === 0;
            pages.hidden = first === 0 && !more;
            on.hidden = !more;
            fill(range, messages.length ? `${number(first + 1)} to ${number(first + messages.length)}` : '');
        },
    };
}

export function queuePage(app, key, tab, first) {
    const name = el('bdi', {}, line(decoded(key)));
    const tag = el('span', {class: 'tags warn'});
    const pause = pauseButton(app, key);
    const sums = numbers();
    const tabs = el('nav', {class: 'tabs', 'aria-label': 'Places'},
        ...Object.entries({...PLACES, workers: 'Workers'}).map(([place, text]) => el('a',
            {href: `#/queue/${key}/${place}`, 'aria-current': place === tab && 'page'}, text)));
    const workers = tab === 'workers' && workersTable(false);
    const list = workers || messagesTable(app, key, tab, first);

    const month = daysOf(key);
    const query = `?queue=${key}`;

    const update = async state => {
        const done = await renewHistory(query);
        const queue = state.queues.find(queue => queue.key === key) ?? await get(`queue?queue=${key}`);
        fill(name, line(queue.name));
        fill(tag, tags(queue));
        pause.update(queue);
        sums.update(queue, done);
        await month.update();
        if (workers) {
            workers.update(await get(`workers?queue=${key}`));
        } else {
            await list.update();
        }
    };
    return {
        title: decoded(key),
        nodes: [el('div', {class: 'heading'}, el('h1', {}, name), tag, pause.node), sums.node,
            month.node, tabs,
            ...list.nodes, finder(app, key)],
        query: () => query,
        update,
    };
}
)js";

} // namespace orizuru::detail::web
