// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The tables of a queue's keys and groups.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view waits_js = R"js(
// Two tabs of a queue: its keys, with how many jobs wait for each, and its groups.

import {get} from './api.js';
import {duration, el, fill, fillRows, head, line, moment, number} from './elements.js';
import {openMessage} from './message.js';

const PAGE = 50; // as the server has it

// The rows of a route, with links to those before and behind them.
function rowsTable(key, tab, first, heads, make, update) {
    const body = el('tbody');
    const table = el('table', {}, head(...heads), body);
    const none = el('p', {class: 'empty', hidden: ''}, 'Nothing here.');
    const to = at => `#/queue/${key}/${tab}/${at}`;
    const back = el('a', {href: to(Math.max(0, first - PAGE))}, '← Back');
    const on = el('a', {href: to(first + PAGE)}, 'More →');
    return {
        nodes: [table, none, el('div', {class: 'row'}, back, on)],
        update: async () => {
            const {rows, more} = await get(`${tab}?queue=${key}&first=${first}`);
            fillRows(body, rows, make, update);
            table.hidden = rows.length === 0;
            none.hidden = rows.length > 0;
            back.hidden = first === 0;
            on.hidden = !more;
        },
    };
}

// A row opens the job of its key that is out.
export function keysTable(app, key, first) {
    const open = async row => {
        try {
            const {messages} = await get(`key?queue=${key}&key=${row.dataset.key}`);
            if (messages.length) {
                openMessage(app, messages[0]);
            } else {
                app.say('Its job that is out was not found.');
            }
        } catch (error) {
            app.fail(error);
        }
    };
    const make = () => {
        const row = el('tr', {tabindex: 0, onclick: () => open(row),
            onkeydown: event => event.key === 'Enter' && open(row)});
        row.append(el('td', {class: 'text'}), el('td'));
        return row;
    };
    return rowsTable(key, 'keys', first, [['Key', 'text'], ['Behind its job']], make, (row, {name, behind}) => {
        const [text, count] = row.children;
        fill(text, line(name));
        fill(count, number(behind), behind === 0 ? 'zero' : '');
    });
}

export function groupsTable(key, first) {
    const make = () => el('tr', {}, el('td', {class: 'text'}), el('td', {class: 'text'}), el('td'), el('td'),
        el('td', {class: 'rare'}), el('td', {class: 'rare'}), el('td', {class: 'text rarer'}));
    return rowsTable(key, 'groups', first, [['Group', 'text'], ['', 'text'], ['Not ended'], ['Failed'],
        ['Made', 'rare'], ['Expires', 'rare'], ['Then', 'text rarer']], make, (row, group) => {
        const [name, stage, pending, failed, made, expires, then] = row.children;
        fill(name, line(group.name));
        name.title = line(group.name);
        fill(stage, group.stage);
        fill(pending, `${number(group.pending)} of ${number(group.jobs)}`);
        fill(failed, number(group.failed), group.failed === 0 ? 'zero' : 'bad');
        fill(made, group.made === null ? '–' : `${duration(Date.now() - group.made)} ago`);
        made.title = group.made === null ? '' : moment(group.made);
        fill(expires, group.expiresIn === null ? '–' : `in ${duration(group.expiresIn)}`,
            group.expiresIn === null ? 'zero' : '');
        fill(then, line(group.then));
    });
}
)js";

} // namespace orizuru::detail::web
