// The queue: the service's list, and the events since then.
import { clean, count, duration, size, sizeOf, speed } from './text.js';

const heldTexts = { hours: 'outside the allowed hours', space: 'little free space' };
export const heldText = (held) => heldTexts[held] ?? clean(held);

export const stateTexts = {
	waiting: 'Waiting', active: 'Running', paused: 'Paused', failed: 'Failed', cancelling: 'Cancelling',
	completed: 'Completed', cancelled: 'Cancelled', probing: 'Connecting', retrying: 'Retrying', verifying: 'Verifying',
};
const numbers = ['bytes_done', 'bytes_total', 'rate', 'eta', 'connections'];

const again = 'Check the URL, or try again later.';
const restart = 'Cancel it with its partial file, then add it again.';
const remedies = {
	network: again, server: again, tls: again, auth: again, space: 'Free some space, then retry.',
	integrity: restart, changed: restart, state: restart, exists: 'Choose another file name or directory.',
};

const sentence = (text) => clean(text).replace(/([^.!?…])$/, '$1.');

export const messageText = ({ message }) => sentence(message);

/** What can be done about an error; empty if nothing is known. */
export const remedyText = ({ hint, code }) => sentence(hint ?? remedies[code]);

export const errorText = (error) => [messageText(error), remedyText(error)].filter(Boolean).join(' ');

class Item {
	phase = '';
	progressAt = 0;
	messages = [];
	samples = [];

	constructor(record) {
		this.record = record;
	}

	get stateText() {
		const { state } = this.record;
		return (state === 'active' && stateTexts[this.phase]) || stateTexts[state] || clean(state);
	}

	/** From 0 to 1; NaN while the length is unknown. */
	get fraction() {
		const { bytes_done: done = 0, bytes_total: total } = this.record;
		return total === 0 ? 1 : Math.min(done / total, 1);
	}

	summary(held) {
		const { state, bytes_done: done, bytes_total: total, rate, eta, connections: n } = this.record;
		const parts = [this.stateText, state === 'waiting' && held && heldText(held), sizeOf(done, total)];
		if (state === 'active') parts.push(speed(rate), eta >= 0 && `${duration(eta)} left`, n > 0 && count(n, 'connection'));
		return parts.filter(Boolean).join(' · ');
	}

	addMessage(text, kind = '') {
		this.messages.push({ at: Date.now(), text, kind });
		if (this.messages.length > 100) this.messages.shift();
	}

	/** One sample a second, of three minutes. */
	addSample(rate = 0) {
		const at = performance.now();
		if (at - this.samples.at(-1)?.at < 1000) return;
		this.samples.push({ at, rate });
		if (this.samples.length > 180) this.samples.shift();
	}
}

export class Store {
	order = [];
	service = {};
	#items = new Map();

	get = (id) => this.#items.get(id);

	/** @param since When the list was requested. Progress that came later is newer. */
	applyList(records, since) {
		this.order = records.map((record) => {
			const item = this.get(record.id) ?? new Item(record);
			if (record.state !== 'active') item.phase = '';
			else if (item.progressAt > since) for (const key of numbers) record[key] = item.record[key];
			item.record = record;
			return item;
		});
		this.#items = new Map(this.order.map((item) => [item.record.id, item]));
	}

	move(item, place) {
		this.order.splice(this.order.indexOf(item), 1);
		this.order.splice(place, 0, item);
	}

	totals() {
		const counts = {};
		let [rate, done, total] = [0, 0, 0];
		for (const { record } of this.order) {
			counts[record.state] = (counts[record.state] ?? 0) + 1;
			done += record.bytes_done ?? 0;
			total += record.bytes_total ?? 0;
			if (record.state === 'active') rate += record.rate ?? 0;
		}
		return { counts, rate, done, total };
	}

	/** @returns a text if the file has ended. */
	applyEvent(name, data) {
		const item = this.get(data.id);
		if (!item) return;
		const { record } = item;
		if (name === 'progress' || name === 'state') {
			item.phase = data.state ?? item.phase;
			if (record.state === 'waiting') record.state = 'active';
		}
		switch (name) {
			case 'progress':
				item.progressAt = performance.now();
				for (const key of numbers) record[key] = data[key];
				return item.addSample(data.rate);
			case 'started':
				record.path = data.path;
				record.bytes_total = data.bytes_total;
				return item.addMessage(`Started: ${size(data.bytes_total) || 'unknown length'}${data.resumed_from ? `, resumed at ${size(data.resumed_from)}` : ''}`);
			case 'retry':
				return item.addMessage(`Attempt ${data.attempt} failed: ${clean(data.reason)}. Next attempt in ${duration(data.delay)}.`);
			case 'note':
				return item.addMessage(clean(data.message));
			case 'paused':
				// The list says whether the entry is paused, or the service ends.
				return item.addMessage('Paused');
			case 'failed':
				record.state = 'failed';
				record.error = data;
				item.addMessage(errorText(data), 'error');
				return `failed: ${errorText(data)}`;
			case 'completed': {
				Object.assign(record, { path: data.path, state: 'completed', bytes_done: data.bytes, bytes_total: data.bytes });
				const text = `${size(data.bytes)} in ${duration(data.seconds)}, ${data.verified_by === 'none' ? 'not verified' : `verified by ${clean(data.verified_by).replace('_', ' ')}`}.`;
				item.addMessage(`Completed: ${text}`);
				this.order = this.order.filter((other) => other !== item);
				this.#items.delete(data.id);
				return `completed: ${text}`;
			}
		}
	}
}
