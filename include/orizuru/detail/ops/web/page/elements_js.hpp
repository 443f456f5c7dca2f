// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Makes and updates what is on the page.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view elements_js = R"js(
// Makes and updates what is on the page. Texts of others become text nodes, never markup.

// el('td', {class: 'text', onclick: open}, 'text or other elements')
export function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (typeof value === 'function') {
            node.addEventListener(name.slice(2), value);
        } else if (value !== undefined && value !== false) {
            node.setAttribute(name, value);
        }
    }
    node.append(...children);
    return node;
}

export function head(...columns) {
    return el('thead', {}, el('tr', {}, ...columns.map(
        ([name, style]) => el('th', {class: style, scope: 'col'}, name))));
}

// Leaves alone what is right, so that a selection and a click in progress stay.
export function fill(node, text, style = '') {
    if (node.textContent !== text) {
        node.textContent = text;
    }
    if (node.dataset.style !== style) {
        node.classList.remove(...(node.dataset.style ?? '').split(' ').filter(Boolean));
        node.classList.add(...style.split(' ').filter(Boolean));
        node.dataset.style = style;
    }
}

// Gives a table's body one row for each item: a row stays as long as an item has its key.
export function fillRows(body, items, make, update) {
    const rows = new Map([...body.children].map(row => [row.dataset.key, row]));
    const keys = new Set(items.map(item => item.key));
    for (const [key, row] of rows) {
        if (!keys.has(key)) {
            row.remove();
        }
    }
    let next = body.firstElementChild;
    for (const item of items) {
        const row = rows.get(item.key) ?? make(item);
        row.dataset.key = item.key;
        update(row, item);
        if (row === next) {
            next = next.nextElementSibling;
        } else {
            body.insertBefore(row, next);
        }
    }
}

// The text of a part of the address.
export function decoded(key) {
    try {
        return decodeURIComponent(key);
    } catch {
        return key;
    }
}

// Control characters and marks that turn the writing direction, made visible.
export function plain(text) {
    return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
        c => `\\u{${c.codePointAt(0).toString(16)}}`);
}

// Puts it on one line, too.
export function line(text) {
    return plain(text.replace(/\s+/g, ' '));
}

export function number(value) {
    return value.toLocaleString('en');
}

// Tells what a message was blamed for.
export function deaths(count) {
    return count > 0 ? `for ${number(count)} ${count === 1 ? 'death' : 'deaths'}` : '';
}

// 840 ms, 12 s, 43 min, 5 h, 3 d
export function duration(milliseconds) {
    const ms = Math.max(0, milliseconds);
    const units = [[86_400_000, 'd', 2], [3_600_000, 'h', 1.5], [60_000, 'min', 1.5], [1000, 's', 1]];
    const [size, unit] = units.find(([size, , least]) => ms >= size * least) ?? [1, 'ms'];
    return `${number(Math.floor(ms / size))} ${unit}`;
}

// 2026-11-25 14:31:07, by the clock of the one who looks
export function moment(milliseconds) {
    return new Date(milliseconds).toLocaleString('sv-SE');
}

export function size(bytes) {
    return bytes < 1024 ? `${bytes} B`
        : bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KiB`
            : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

function shape(tag, attributes, ...children) {
    const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) {
        node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
}

// A line of points, the newest on the right; null is a gap.
export function sparkline() {
    return shape('svg', {viewBox: '0 0 110 20', role: 'img'}, shape('path', {}));
}

export function draw(svg, points, most) {
    const largest = Math.max(1, ...points);
    let path = '';
    let pen = 'M';
    points.forEach((value, i) => {
        if (value === null) {
            pen = 'M';
            return;
        }
        const x = 110 - (points.length - 1 - i) * 110 / (most - 1);
        const y = 18.5 - 17 * value / largest;
        path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
        pen = 'L';
    });
    svg.firstChild.setAttribute('d', path);
    svg.setAttribute('aria-label', `up to ${number(largest)}`);
}

// A bar for each day: what failed stands on what was done.
export function bars(days) {
    const highest = Math.max(1, ...days.map(day => day.done + day.failed));
    const height = count => count === 0 ? 0 : Math.max(1, 48 * count / highest);
    return shape('svg', {viewBox: `0 0 ${days.length * 36} 50`, preserveAspectRatio: 'none',
        role: 'img', 'aria-label': `Jobs of the last ${days.length} days`},
    ...days.map((day, i) => {
        const date = new Date(day.day).toISOString().slice(0, 10);
        const [done, failed] = [height(day.done), height(day.failed)];
        const box = (y, high, style) => shape('rect', {x: i * 36 + 2, y, width: 32, height: high, class: style});
        return shape('g', {}, shape('title', {},
            `${date}: ${number(day.done)} done, ${number(day.failed)} failed`),
        box(0, 50, 'day'), box(50 - done, done, 'done'), box(50 - done - failed, failed, 'failed'));
    }));
}

// Asks before what cannot be undone: the buttons give way to a question in their place.
export function confirming(buttons, question, word, action) {
    const kept = [...buttons.childNodes];
    const back = () => buttons.replaceChildren(...kept);
    const no = el('button', {onclick: () => { back(); kept.find(node => node.focus)?.focus(); }}, 'Keep');
    buttons.replaceChildren(
        el('span', {}, question),
        el('button', {class: 'bad', onclick: () => { back(); action(); }}, word),
        no);
    no.focus();
}
)js";

} // namespace orizuru::detail::web
