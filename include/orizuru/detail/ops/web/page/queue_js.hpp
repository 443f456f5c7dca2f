// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The page of one queue.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view queue_js = R"js(
// One queue: its numbers, and a tab for each place and for its workers.

import {get} from './api.js';
import {bars, confirming, deaths, decoded, duration, el, fill, fillRows, head, line, moment, number, size} from './elements.js';
import {openMessage} from './message.js';
import {numbers, pauseButton, PLACES, renewHistory, tags, workersTable} from './queues.js';
import {groupsTable, keysTable} from './waits.js';

const PAGE = 50;
const SEARCH_AGAIN = 5000;
const TIMES = {waiting: 'Enqueued', held: 'Enqueued', scheduled: 'Due', rejected: 'Enqueued',
    suspected: 'Enqueued', dead: 'Died'};
const NOTES = {held: 'Worker', suspected: 'Blamed', dead: 'Reason'};

// Tells when it was enqueued, is due, or died, seen from now.
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

// Chooses dead messages by their error. Runs or removes all that are chosen, and asks before, with
// their number: the step is for what is shown, and not for what dies later.
function deadFilter(app, key, changed) {
    let typed;
    let shown;
    const box = el('input', {type: 'search', placeholder: 'Errors with this text',
        'aria-label': 'A part of the error', oninput: () => {
            clearTimeout(typed);
            typed = setTimeout(changed, 250);
        }});
    const form = el('form', {class: 'row', onsubmit: event => event.preventDefault()}, box);
    const buttons = el('div', {class: 'row'});
    const button = (word, step, past) => {
        const node = el('button', {onclick: () => {
            const {reason, count, allCounted, until} = shown;
            const many = `${allCounted ? '' : 'more than '}${number(count)}`;
            const which = reason ? `with the error “${line(reason)}”` : 'dead messages';
            confirming(buttons, `${word} all ${many} ${which}${step === 'clear' ? ' for ever' : ''}?`,
                `${word} all`, () => app.step(node, `${step}?queue=${key}&place=dead`
                    + (reason ? `&reason=${encodeURIComponent(reason)}` : '')
                    + (until === null ? '' : `&until=${until}`), error => app.fail(error), past));
        }}, `${word} all`);
        return node;
    };
    buttons.append(button('Run', 'run-all', 'run again'), button('Remove', 'clear', 'removed'));
    const node = el('div', {class: 'row', hidden: ''}, form, el('span', {class: 'space'}), buttons);
    return {
        node,
        reason: () => box.value.trim(),
        show(now) {
            shown = now;
            node.hidden = now.reason === '' && now.count === 0;
            buttons.hidden = !app.writes || now.count === 0;
        },
    };
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
    const table = el('table', {class: 'messages'}, head(['Message', 'text'],
        [NOTES[place] ?? 'Last error', 'text rare'], ['Try', 'rarer'], ['Size', 'rarer'], [TIMES[place]]), body);
    const none = el('p', {class: 'empty', hidden: ''}, 'Nothing here.');
    const to = at => `#/queue/${key}/${place}/${at}`;
    const back = el('a', {href: to(Math.max(0, first - PAGE))}, '← Back');
    const range = el('span', {class: 'quiet'});
    const on = el('a', {}, 'More →');
    const pages = el('div', {class: 'row'}, back, range, on);
    let known = {};
    const filter = place === 'dead' && deadFilter(app, key, () => app.refresh());
    const query = `messages?queue=${key}&place=${place}`;

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
        fill(note, line(message.consumer && message.runningSince
            ? `${message.consumer}, runs since ${moment(message.runningSince)}` : message.consumer || deaths(message.blamed) || message.reason
            || message.job?.lastError || ''));
        fill(attempt, message.job ? number(message.job.attempt) : '–', message.job ? '' : 'zero');
        fill(bytes, size(message.size));
        const [shown, style, title] = when(message, Date.now());
        fill(time, shown, style);
        time.title = title;
    };
    return {
        nodes: [...filter ? [filter.node] : [], table, none, pages],
        update: async () => {
            const reason = filter ? filter.reason() : '';
            const same = reason === known.reason && app.steps === known.steps;
            if (reason && same && Date.now() - known.at < SEARCH_AGAIN) {
                return; // the server looks through all of them
            }
            known = {reason, steps: app.steps, at: Date.now()};
            const {messages, more, count, allCounted, until} = await get(
                query + (reason ? `&reason=${encodeURIComponent(reason)}` : `&first=${first}`));
            if (filter && reason !== filter.reason()) {
                return; // somebody types on
            }
            const seen = {};
            for (const message of messages) { // equal ones have one id
                seen[message.id] = (seen[message.id] ?? 0) + 1;
                message.key = `${message.id} ${seen[message.id]}`;
            }
            fillRows(body, messages, make, update);
            table.hidden = messages.length === 0;
            none.hidden = messages.length > 0;
            fill(none, reason ? 'No error has this text.' : 'Nothing here.');
            if (filter) {
                filter.show({reason, count, allCounted: allCounted ?? true, until});
            }
            pages.hidden = reason ? !more && allCounted : first === 0 && !more;
            back.hidden = reason !== '' || first === 0;
            on.hidden = reason !== '' || !more;
            on.href = to(first + messages.length); // of large ones there are fewer
            fill(range, !messages.length ? '' : !reason ? `${number(first + 1)} to ${number(first + messages.length)}`
                : `the newest ${number(messages.length)} of ${number(count)}${allCounted ? '' : ' or more'}`);
        },
    };
}

export function queuePage(app, key, tab, first) {
    const name = el('bdi', {}, line(decoded(key)));
    const tag = el('span', {class: 'tags warn'});
    const pause = pauseButton(app, key);
    const sums = numbers();
    const links = Object.fromEntries(Object.entries({...PLACES, keys: 'Keys', groups: 'Groups', workers: 'Workers'})
        .map(([place, text]) => [place, el('a',
            {href: `#/queue/${key}/${place}`, 'aria-current': place === tab && 'page'}, text)]));
    const tabs = el('nav', {class: 'tabs', 'aria-label': 'Places'}, ...Object.values(links));
    const workers = tab === 'workers' && workersTable(false);
    const list = workers || tab === 'keys' && keysTable(app, key, first)
        || tab === 'groups' && groupsTable(key, first) || messagesTable(app, key, tab, first);

    const month = daysOf(key);
    const query = `?queue=${key}`;

    const update = async state => {
        const done = await renewHistory(query);
        const queue = state.queues.find(queue => queue.key === key) ?? await get(`queue?queue=${key}`);
        fill(name, line(queue.name));
        fill(tag, tags(queue));
        pause.update(queue);
        sums.update(queue, done);
        links.keys.hidden = tab !== 'keys' && queue.keys === 0;
        links.groups.hidden = tab !== 'groups' && queue.groups === 0;
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
