// Sign-in, the connection to the service, and the actions.
import { API } from './api.js';
import { $, confirm, make, setDisabled, setText } from './dom.js';
import { clean, count, fileName, sizeOf, speed } from './text.js';
import { errorText, heldText, stateTexts, Store } from './store.js';
import { QueueList } from './list.js';
import { Detail } from './detail.js';
import { AddDialog } from './add.js';
import { History, Limits } from './panels.js';

const storageKey = 'segdl-secret';
// Seconds between two attempts to connect.
const delayMax = 20;
// Milliseconds from an event to drawing it, with all that come in the meantime.
const eventPause = 400;
// Milliseconds between two requests for the list: that of 10,000 files has some megabytes.
const refreshPause = 1000;

const api = new API();
const store = new Store();
const list = new QueueList(store, { select: selectionChanged, open: openDetail, move, cancel });
const detail = new Detail(store, api, { onClose: () => $('grid').focus(), isConnected: () => isConnected });
const history = new History(api, report);
const limits = new Limits(api, { onError: report, onChange: refresh });
const adding = new AddDialog(api, {
	isReady: () => !$('app').hidden && !$('confirm-dialog').open,
	onAdded(number) {
		setText($('notice'), `${count(number, 'download')} added.`);
		refresh();
	},
});
const wrongSecret = 'The secret is wrong.';
const views = ['queue', 'history', 'limits'];
let session = null;
let isConnected = false;

function signIn(secret) {
	// A header cannot hold other characters.
	if (!/^[\x21-\x7E]+$/.test(secret)) return signOut(wrongSecret);
	session?.abort();
	api.secret = secret;
	session = new AbortController();
	connect(session.signal);
}

function signOut(message = '') {
	session?.abort();
	sessionStorage.removeItem(storageKey);
	api.secret = '';
	detail.close();
	for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
	$('app').hidden = true;
	$('sign-in').hidden = false;
	setText($('sign-in-error'), message);
	$('secret').value = '';
	$('secret').focus();
}

/** The secret from the address, which is removed from the address bar. */
function secretOfAddress() {
	const text = /^#secret=(.+)$/.exec(location.hash)?.[1];
	if (!text) return null;
	window.history.replaceState(null, '', location.pathname + location.search);
	return new URLSearchParams(`secret=${text.replaceAll('+', '%2B')}`).get('secret');
}

async function connect(signal) {
	let delay = 1;
	let lastID;
	while (!signal.aborted) {
		try {
			store.service = await api.get('/v1');
			lastID ??= store.service.event;
			sessionStorage.setItem(storageKey, api.secret);
			// A hidden page needs its list when it is shown.
			if (document.hidden && store.order.length) isStale = true;
			else await fetchList();
			show(signal);
			await api.events(lastID, {
				signal,
				onOpen() {
					delay = 1;
					setConnected(true);
				},
				onEvent(name, data, id) {
					lastID = id ?? lastID;
					handle(name, data);
				},
			});
		} catch (error) {
			if (error.status === 401 && !signal.aborted) return signOut(wrongSecret);
			show(signal);
		}
		if (signal.aborted) return;
		setConnected(false);
		await countdown(delay, signal);
		delay = Math.min(delay * 2, delayMax);
	}
}

function setConnected(value) {
	isConnected = value;
	document.body.classList.toggle('disconnected', !value);
	setText($('connection-text'), value ? 'Connected' : 'Disconnected');
	setText($('countdown'), '');
}

/** Waits, and shows how long still. */
function countdown(seconds, signal) {
	return new Promise((resolve) => {
		const tick = () => {
			setText($('countdown'), `trying again in ${seconds} s`);
			if (seconds-- <= 0) end();
		};
		const timer = setInterval(tick, 1000);
		const end = () => resolve(clearInterval(timer));
		window.ononline = signal.onabort = end;
		tick();
	});
}

async function fetchList() {
	const since = performance.now();
	const { downloads } = await api.get('/v1/downloads');
	store.applyList(downloads, since);
	list.prune();
	selectionChanged();
	draw();
}

let isRefreshing = false;
let isStale = false;

/** Fetches the state and the list; once more afterwards if it is called in the meantime. A hidden page waits until it is shown. */
async function refresh() {
	isStale = true;
	if (isRefreshing) return;
	isRefreshing = true;
	while (isStale && isConnected && !document.hidden) {
		isStale = false;
		await moves;
		const start = performance.now();
		try {
			store.service = await api.get('/v1');
			await fetchList();
			if (!$('view-history').hidden) await history.load();
		} catch { /* The connection for events fails as well, and reports it. */ }
		// The page spends at most a fifth of its time on a long list.
		await new Promise((resolve) => setTimeout(resolve, Math.max(refreshPause, 4 * (performance.now() - start))));
	}
	isRefreshing = false;
}

document.onvisibilitychange = () => isStale && refresh();

// The free space changes without an event.
setInterval(async () => {
	if (document.hidden || !isConnected) return;
	try {
		const { counts } = store.service = await api.get('/v1');
		const shown = store.totals().counts;
		if (Object.entries(counts).some(([state, number]) => number !== (shown[state] ?? 0))) refresh();
		draw();
	} catch { /* As in refresh(). */ }
}, 10_000);

function handle(name, data) {
	if (name === 'queue' || name === 'lost') return refresh();
	const item = store.get(data.id);
	const news = store.applyEvent(name, data);
	if (news) announce(`${clean(fileName(item.record), 200)} ${news}`);
	// A download may need the processor more than the page does.
	timer ||= setTimeout(draw, eventPause);
}

let [frame, timer] = [0, 0];

function draw() {
	clearTimeout(timer);
	timer = 0;
	frame ||= requestAnimationFrame(() => {
		frame = 0;
		const { counts, rate, done, total } = store.totals();
		const parts = Object.entries(stateTexts).filter(([state]) => counts[state]).map(([state, text]) => `${counts[state].toLocaleString()} ${text.toLowerCase()}`);
		if (total) parts.push(sizeOf(done, total));
		if (counts.active) parts.push(speed(rate));
		setText($('totals'), parts.join(' · '));
		const { held, version } = store.service;
		$('held').hidden = !held;
		setText($('held'), held ? `All downloads are waiting: ${heldText(held)}. See Limits.` : '');
		setText($('version'), `segdl ${clean(version, 40)}`);
		$('empty').hidden = store.order.length > 0;
		list.draw();
		detail.draw();
	});
}

function show(signal) {
	if (signal.aborted || !$('app').hidden) return;
	$('sign-in').hidden = true;
	$('app').hidden = false;
	openView('queue');
}

function openView(name) {
	for (const view of views) {
		$(`view-${view}`).hidden = view !== name;
		$(`open-${view}`).ariaCurrent = view === name ? 'page' : null;
	}
	({ history, limits })[name]?.load();
	draw();
}

const news = new Map();

/** Once a second at most. @param subject A later text about it replaces this one. */
function announce(text, subject = text) {
	if (!news.size) setTimeout(() => {
		setText($('notice'), [...news.values()].slice(0, 3).join(' ') + (news.size > 3 ? ` And ${news.size - 3} more.` : ''));
		news.clear();
	}, 1000);
	news.set(subject, text);
}

function report(...errors) {
	$('problem-text').replaceChildren(...errors.slice(0, 5).map((error) => make('p', {}, errorText(error))));
	$('problem').hidden = !errors.length;
}

const results = { pause: 'paused', resume: 'resumed', cancel: 'cancelled', remove: 'removed' };
const states = {
	pause: ['waiting', 'active'],
	resume: ['paused', 'failed'],
	cancel: ['waiting', 'active', 'paused', 'failed'],
	remove: ['paused', 'failed'],
};
const chosen = (action) => list.selection().filter(({ record }) => states[action].includes(record.state));

function selectionChanged() {
	const number = list.selected.size;
	const next = store.order.length ? $('grid') : $('add');
	const disable = (id, isDisabled) => setDisabled($(id), isDisabled, next);
	for (const action of Object.keys(states)) disable(action, !chosen(action).length);
	for (const direction of ['top', 'up', 'down']) disable(`move-${direction}`, !number);
	disable('details', !list.current);
	const resumable = chosen('resume');
	setText($('resume'), resumable.length && resumable.every(({ record }) => record.state === 'failed') ? 'Retry' : 'Resume');
	setText($('selection'), number ? `${count(number, 'file')} selected` : '');
	detail.show(list.current);
}

async function act(action, body) {
	try {
		const { changed, errors } = await api.post(`/v1/downloads/${action}`, body);
		const failed = Object.entries(errors).map(([id, error]) => ({ ...error, message: `${fileName(store.get(id)?.record ?? { path: id })}: ${error.message}` }));
		if (failed.length) report(...failed);
		if (changed.length && results[action]) announce(`${count(changed.length, 'file')} ${results[action]}.`);
		refresh();
	} catch (error) {
		report(error);
	}
}

const actOn = (items, action, more) => items.length && act(action, { ids: items.map(({ record }) => record.id), ...more });

async function ask(action, title, text) {
	const items = chosen(action);
	if (!items.length) return;
	const names = items.length === 1 ? clean(fileName(items[0].record), 200) : count(items.length, 'file');
	const { confirmed, isDeleting } = await confirm(title, `${names}. ${text}`, action === 'cancel');
	if (confirmed) actOn(items, action, { delete: isDeleting });
}

function cancel() {
	ask('cancel', 'Cancel downloads', 'Cancelled files leave the queue.');
}

let moves = Promise.resolve();

function move(direction) {
	const items = list.selection();
	const { length } = store.order;
	const places = items.map((item, index) => {
		const at = store.order.indexOf(item);
		return direction === 'top' ? index : direction === 'up' ? Math.max(at - 1, index) : Math.min(at + 1, length - items.length + index);
	});
	const steps = items.map((item, index) => [item, places[index]]);
	for (const [item, to] of direction === 'down' ? steps.reverse() : steps) {
		if (store.order.indexOf(item) === to) continue;
		store.move(item, to);
		moves = moves.then(() => actOn([item], 'move', { to }));
	}
	if (list.current) list.reveal(list.indexOf(list.current));
	const place = items.length && `number ${(store.order.indexOf(items[0]) + 1).toLocaleString()} of ${length.toLocaleString()}`;
	if (items.length === 1) announce(`${clean(fileName(items[0].record), 200)} is ${place}.`, 'move');
	else if (items.length) announce(`${count(items.length, 'file')} moved, the first to ${place}.`, 'move');
	draw();
}

function openDetail() {
	if (list.current) detail.open(list.current);
}

const buttons = {
	'sign-out': () => signOut(), 'problem-close': () => report(),
	add: () => adding.open(), cancel, details: openDetail,
	pause: () => actOn(chosen('pause'), 'pause'), resume: () => actOn(chosen('resume'), 'resume'),
	remove: () => ask('remove', 'Remove from the queue', 'Partial files stay.'),
	'move-top': () => move('top'), 'move-up': () => move('up'), 'move-down': () => move('down'),
	'pause-all': () => act('pause', { all: true }), 'resume-all': () => act('resume', { all: true }),
};
for (const view of views) buttons[`open-${view}`] = () => openView(view);
for (const [id, action] of Object.entries(buttons)) $(id).onclick = action;

$('sign-in-form').onsubmit = (event) => {
	event.preventDefault();
	setText($('sign-in-error'), '');
	signIn($('secret').value);
};

function start() {
	const secret = secretOfAddress() ?? sessionStorage.getItem(storageKey);
	if (secret) signIn(secret);
	else signOut();
}

window.onhashchange = () => location.hash.startsWith('#secret=') && start();
start();
