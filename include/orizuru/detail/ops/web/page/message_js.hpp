// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The dialog that shows one message.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view message_js = R"js(
// The dialog that shows one message: when, how often, why, its payload, and what can be done.

import {download, get} from './api.js';
import {confirming, deaths, el, fill, line, moment, plain, size} from './elements.js';
import {PLACES} from './queues.js';

const dialog = document.querySelector('dialog');

function facts(message) {
    const job = message.job ?? {};
    const time = value => value ? moment(value) : '';
    const tries = job.attempt && (job.maxAttempts ? `${job.attempt} of ${job.maxAttempts}` : `${job.attempt}`);
    const attributes = Object.entries(job.attributes ?? {}).map(([name, value]) => `${name}: ${value}`);
    const all = {
        'Where': PLACES[message.place],
        'Worker': message.consumer,
        'Runs since': time(message.runningSince),
        'Died': message.place === 'dead' && time(message.time),
        'Due': message.place === 'scheduled' && time(message.time),
        'Reason': message.reason,
        'Blamed': deaths(message.blamed),
        'Job': job.id,
        'Kind': job.kind,
        'Try': tries,
        'First enqueued': time(job.firstEnqueuedAt),
        'Enqueued': time(job.enqueuedAt),
        'First failed': time(job.firstFailedAt),
        'Expires': time(job.expiresAt),
        'Last error': job.lastError !== message.reason && job.lastError,
        'Unique': job.uniqueId,
        'Key': job.key,
        'Attributes': attributes.join('\n'),
        'Size': size(message.size),
    };
    return el('dl', {class: 'facts'}, ...Object.entries(all).filter(([, value]) => value).flatMap(
        ([name, value]) => [el('dt', {}, name), el('dd', {}, plain(value))]));
}

// 16 bytes a line: where they are, their digits, and what of it is ASCII
function hexDump(digits) {
    const bytes = digits.match(/../g) ?? [];
    const lines = [];
    for (let at = 0; at < bytes.length; at += 16) {
        const some = bytes.slice(at, at + 16);
        const ascii = some.map(byte => parseInt(byte, 16))
            .map(byte => byte > 31 && byte < 127 ? String.fromCharCode(byte) : '.').join('');
        lines.push(`${at.toString(16).padStart(4, '0')}  ${some.join(' ').padEnd(48)} ${ascii}`);
    }
    return lines.join('\n');
}

function payload(message) {
    if (!message.payload) {
        return [el('p', {class: 'quiet'}, 'Payloads are not shown here.')];
    }
    const {kind, text, hex} = message.payload;
    const shown = el('pre', {tabindex: 0, 'aria-label': 'Payload'});
    const forms = {[kind === 'msgpack' ? 'MessagePack' : 'Text']: () => plain(text)};
    if (message.bytesShown) {
        forms.Hex = () => hexDump(hex);
    }
    const buttons = Object.keys(forms).map(form => el('button', {onclick: () => show(form)}, form));
    const show = form => {
        fill(shown, forms[form]());
        buttons.forEach(button => button.setAttribute('aria-pressed', button.textContent === form));
    };
    show(kind === 'bytes' && forms.Hex ? 'Hex' : Object.keys(forms)[0]);
    const cut = message.bytesShown && message.size > 4096;
    return [el('div', {class: 'row'}, ...buttons,
        el('span', {class: 'quiet space'}, cut ? 'the first 4 KiB' : ''),
        message.bytesShown && el('button', {onclick: () => download(`payload?id=${message.id}`, 'payload')},
            'Download') || ''), shown];
}

function steps(app, message, said) {
    const query = `?id=${message.id}`;
    const act = async (button, step, past) => {
        fill(said, '');
        const done = await app.step(button, step, error => fill(said, line(error), 'bad'));
        if (done === true) {
            dialog.close();
            app.say(past);
        } else if (done === false) {
            fill(said, 'It is no longer there: somebody else was faster.', 'warn');
        }
    };
    const buttons = el('div', {class: 'row'});
    const run = el('button', {onclick: () => act(run, `run${query}`, 'It runs next.')}, 'Run now');
    const remove = el('button', {onclick: () => confirming(buttons, 'Remove this message for ever?',
        'Remove', () => act(remove, `remove${query}`, 'The message is removed.'))}, 'Remove');
    const cancel = el('button', {onclick: () => confirming(buttons, 'Take this job to the dead list?',
        'Cancel it', () => act(cancel, `cancel${query}`, message.place === 'held'
            ? 'Its handler is asked to stop.' : 'The job is on the dead list.'))}, 'Cancel');
    if (message.place === 'held') {
        buttons.append(cancel);
        return buttons;
    }
    const target = el('input', {placeholder: 'Move to queue', 'aria-label': 'Queue to move it to', required: ''});
    const move = el('button', {}, 'Move');
    const moving = el('form', {class: 'row', onsubmit: event => {
        event.preventDefault();
        act(move, `move${query}&to=${encodeURIComponent(target.value)}`, `It waits in ${line(target.value)} now.`);
    }}, target, move);
    buttons.append(run, remove, ...message.job && message.place !== 'dead' ? [cancel] : [], moving);
    return buttons;
}

export async function openMessage(app, row) {
    let message;
    try {
        message = await get(`message?id=${row.id}`);
    } catch (error) {
        app.fail(error);
        return;
    }
    const said = el('p', {role: 'status'});
    const close = el('button', {onclick: () => dialog.close()}, 'Close');
    const title = el('h2', {id: 'title', class: 'space'}, message.job?.kind ? line(message.job.kind) : 'Message');
    dialog.replaceChildren(
        el('div', {class: 'row'}, title, close), facts(message), ...payload(message),
        ...app.writes && (message.place !== 'held' || message.job) ? [steps(app, message, said)] : [], said);
    if (!dialog.open) {
        dialog.showModal();
        close.focus();
    }
}
)js";

} // namespace orizuru::detail::web
