// The details of one file of the queue.
import { $, foreign, make, setText } from './dom.js';
import { drawSegments, drawSpeed } from './chart.js';
import { clean, fileName, isClean, isHTTP, when } from './text.js';
import { errorText } from './store.js';

/** A URL as text, or as a link if it can be opened as it is shown. */
export function urlNode(url) {
	const isLink = isHTTP(url) && isClean(url) && !url.includes('…');
	return isLink ? make('a', { href: url, rel: 'noopener noreferrer', target: '_blank' }, url) : foreign(clean(url));
}

export class Detail {
	#item = null;
	#segments = [];
	#timer = 0;
	#facts = '';
	#messages = '';

	constructor(store, api, { onClose, isConnected }) {
		Object.assign(this, { store, api, onClose, isConnected });
		$('detail-close').onclick = () => this.close();
		$('detail').onkeydown = (event) => event.key === 'Escape' && this.close();
		new ResizeObserver(() => this.draw()).observe($('speed'));
	}

	open(id) {
		$('detail').hidden = false;
		document.body.classList.add('detail-open');
		this.show(id);
		$('detail-title').focus();
	}

	show(id) {
		const item = this.store.get(id);
		if ($('detail').hidden || !item || item === this.#item) return;
		this.#item = item;
		this.#segments = [];
		this.draw();
		this.#load();
	}

	close() {
		if ($('detail').hidden) return;
		this.#item = null;
		$('detail').hidden = true;
		document.body.classList.remove('detail-open');
		this.onClose();
	}

	/** Once a second, because events do not tell how far each segment is. */
	async #load() {
		clearTimeout(this.#timer);
		const item = this.#item;
		if (!item) return;
		if (this.isConnected() && !document.hidden && item.record.state !== 'completed') {
			try {
				const { segments, ...record } = await this.api.get(`/v1/downloads/${encodeURIComponent(item.record.id)}`);
				Object.assign(item.record, record);
				if (item !== this.#item) return;
				if (segments || record.state === 'active') this.#segments = segments ?? [];
				this.draw();
			} catch { /* The rest of the page reports errors of the connection. */ }
		}
		if (item === this.#item) this.#timer = setTimeout(() => this.#load(), 1000);
	}

	draw() {
		const item = this.#item;
		if (!item) return;
		const { record, samples } = item;
		setText($('detail-title'), clean(fileName(record)));
		setText($('detail-state'), item.summary(this.store.service.held));
		setText($('detail-error'), record.error && record.state === 'failed' ? errorText(record.error) : '');
		setText($('speed-text'), drawSpeed($('speed'), samples));

		const total = record.bytes_total;
		let segments = this.#segments;
		if (record.state === 'completed') segments = [{ start: 0, position: total, end: total, state: 'done' }];
		else if (record.state !== 'active') segments = segments.map((each) => ({ ...each, state: each.state === 'done' ? 'done' : 'waiting' }));
		$('segment-figure').hidden = !segments.length || !(total > 0);
		setText($('segment-text'), segments.length ? drawSegments($('segments'), segments, total) : '');

		const { url, mirrors = [], path, attempts = 0, added, id } = record;
		const facts = JSON.stringify([url, mirrors, path, attempts, added, id]);
		if (this.#facts !== facts) {
			this.#facts = facts;
			const list = {
				URL: [urlNode(url)], Mirrors: mirrors.map((mirror) => make('div', {}, urlNode(mirror))),
				Path: [foreign(clean(path))], 'Failed attempts': [attempts], Added: [when(added)], ID: [clean(id)],
			};
			$('facts').replaceChildren(...Object.entries(list).flatMap(([name, nodes]) =>
				nodes.length ? [make('dt', {}, name), make('dd', {}, ...nodes)] : []));
		}
		const messages = `${id} ${item.messages.length} ${item.messages.at(-1)?.at}`;
		if (this.#messages === messages) return;
		this.#messages = messages;
		$('messages').replaceChildren(...item.messages.map(({ at, text, kind }) =>
			make('li', { className: kind }, make('time', {}, new Date(at).toLocaleTimeString()), ' ', foreign(text))).reverse());
		if (!item.messages.length) $('messages').append(make('li', { className: 'muted' }, 'None since the page was opened.'));
	}
}
