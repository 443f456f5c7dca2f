// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Routes and polling.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view page_js = R"js(
// Keeps up to date what the address asks for: the next question follows the last answer; none is
// asked while nobody can see the page, or a dialog is open over it.

import {get, post, setToken, takeToken} from './api.js';
import {decoded, el, fill, line, number} from './elements.js';
import {queuePage} from './queue.js';
import {queuesPage, workersPage} from './queues.js';

const main = document.querySelector('main');
const dialog = document.querySelector('dialog');
const redis = document.querySelector('#redis');
const live = document.querySelector('#live');
const trouble = document.querySelector('#trouble');
const SOON = 300;
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

let page;
let timer;
let polls = 0; // a later one outdates the earlier ones
let sample = 0;

const app = {
    writes: false,
    steps: 0,
    // Takes a step, then shows what it has changed. Resolves to whether it was done; to undefined
    // when it was refused. `past` says what was done to how many.
    async step(button, route, refused = error => app.fail(error), past = '') {
        if (button.ariaBusy) {
            return undefined;
        }
        button.ariaBusy = 'true';
        try {
            let {done, sample: wanted, changed, more, until} = await post(route);
            const again = route + (Number.isInteger(until) && !route.includes('&until=') ? `&until=${until}` : '');
            ++app.steps;
            let sum = changed;
            while (more) { // a part at a time, so that others are served meanwhile
                app.say(`${number(sum)} ${past} …`);
                ({sample: wanted, changed, more} = await post(again));
                sum += changed;
            }
            if (past) {
                app.say(`${number(sum)} ${past}.`);
            }
            for (let tries = 0; tries < 20 && sample < wanted; ++tries) {
                await pause(100);
                await refresh();
            }
            await refresh();
            return done;
        } catch (error) {
            refused(error.message);
            return undefined;
        } finally {
            button.ariaBusy = null;
        }
    },
    refresh() {
        refresh().catch(error => app.fail(error));
    },
    say(text) {
        said = {text, until: Date.now() + 4000};
        fill(live, text);
    },
    fail(error) {
        fill(trouble, line(error.message ?? error));
        trouble.hidden = false;
    },
};
let said = {text: '', until: 0};

function show(state) {
    app.writes = state.writes;
    sample = state.sample;
    const away = state.failure !== '';
    const word = away ? 'away' : state.age === null ? 'connecting' : 'live';
    fill(redis, `${line(state.redis)} · `);
    fill(live, Date.now() < said.until ? said.text : word, away ? 'bad' : '');
    trouble.hidden = !away && state.notice === '';
    fill(trouble, away ? `Redis does not answer: ${line(state.failure)}` : line(state.notice));
    document.body.classList.toggle('away', away);
}

async function refresh() {
    const mine = ++polls;
    const now = page;
    const query = page.query();
    const state = await get(`queues${query}`);
    if (mine === polls) {
        show(state);
    }
    if (now === page && query === page.query() && (state.failure === '' || page.alone)) {
        await page.update(state);
    }
    return state;
}

async function poll() {
    clearTimeout(timer);
    let wait = 2000;
    if (!document.hidden && !dialog.open) {
        try {
            const state = await refresh();
            wait = state.age === null && state.failure === '' ? SOON : state.refresh;
        } catch (error) {
            if (error.status === 401) {
                askForToken();
                return;
            }
            app.fail(error);
            fill(live, 'no answer', 'bad');
        }
    }
    clearTimeout(timer);
    timer = setTimeout(poll, wait);
}

function askForToken() {
    const input = el('input', {type: 'password', 'aria-label': 'Token', autocomplete: 'off'});
    document.title = 'Orizuru';
    fill(live, '');
    trouble.hidden = true;
    main.replaceChildren(
        el('div', {class: 'heading'}, el('h1', {}, 'Which token?')),
        el('p', {class: 'quiet'}, 'Open the link that the program printed, or type the token in it.'),
        el('form', {class: 'row', onsubmit: event => {
            event.preventDefault();
            setToken(input.value.trim());
            open();
        }}, input, el('button', {}, 'Open')));
    input.focus();
}

// #/ or #/queues/FILTER/FIRST or #/workers or #/queue/KEY/PLACE/FIRST
function open() {
    takeToken();
    const [, room, key, tab, first] = location.hash.split('/');
    dialog.close();
    if (room === 'queue' && key) {
        page = queuePage(app, key, tab || 'waiting', Number.parseInt(first, 10) || 0);
    } else if (room === 'workers') {
        page = workersPage();
    } else {
        page = queuesPage(app, room === 'queues' ? decoded(key ?? '') : '', Number.parseInt(tab, 10) || 0);
    }
    document.title = `${line(page.title)} · Orizuru`;
    main.replaceChildren(...page.nodes);
    for (const link of document.querySelectorAll('header nav a')) {
        const here = link.hash === (room === 'workers' ? '#/workers' : '#/');
        link.ariaCurrent = here ? 'page' : null;
    }
    poll();
}

addEventListener('hashchange', open);
document.addEventListener('visibilitychange', () => document.hidden || poll());
dialog.addEventListener('close', async () => {
    dialog.replaceChildren();
    await poll();
    if (document.activeElement === document.body) { // the row that it was opened from is gone
        main.querySelector('tr[tabindex]')?.focus({preventScroll: true});
    }
});
open();
)js";

} // namespace orizuru::detail::web
