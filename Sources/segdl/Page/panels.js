// The history and the limits.
import { $, foreign, make, setDisabled, setText } from './dom.js';
import { clean, fileName, size, when } from './text.js';
import { errorText, stateTexts } from './store.js';
import { urlNode } from './detail.js';

const pageLength = 50;

export class History {
	#offset = 0;
	#shown = '';

	constructor(api, onError) {
		Object.assign(this, { api, onError });
		$('newer').onclick = () => this.load(this.#offset - pageLength);
		$('older').onclick = () => this.load(this.#offset + pageLength);
	}

	async load(offset = this.#offset) {
		try {
			// One more than is shown, to see whether there is another page.
			const { downloads } = await this.api.get(`/v1/history?limit=${pageLength + 1}&offset=${offset}`);
			this.#offset = offset;
			this.#show(downloads);
		} catch (error) {
			this.onError(error);
		}
	}

	#show(downloads) {
		// Rows that are replaced lose the focus.
		const shown = JSON.stringify([this.#offset, downloads]);
		if (this.#shown === shown) return;
		this.#shown = shown;
		const rows = downloads.slice(0, pageLength);
		setDisabled($('newer'), this.#offset === 0, $('older'));
		setDisabled($('older'), downloads.length <= pageLength, $('newer'));
		setText($('history-text'), rows.length ? `${this.#offset + 1} to ${this.#offset + rows.length}` : 'No downloads.');
		$('history-rows').replaceChildren(...rows.map((record) => make('tr', {},
			make('th', { scope: 'row' }, foreign(clean(fileName(record))),
				foreign(clean(record.path), 'sub'), make('span', { className: 'sub' }, urlNode(record.url))),
			make('td', {}, clean(stateTexts[record.state] ?? record.state)),
			make('td', {}, size(record.bytes_done)), make('td', {}, when(record.ended)))));
	}
}

// As ServiceSetting.all, in plain words.
const settings = {
	'max-connections': ['Connections in all', 'A number.'],
	'max-connection-per-server': ['Connections to one server', 'A number.'],
	'max-concurrent-downloads': ['Files at once', 'A number.'],
	'limit-rate': ['Speed limit for all files together', 'Bytes per second, such as 500k or 2M; 0 for no limit.'],
	metered: ['Metered network interfaces', 'pause or allow: whether downloads use them.'],
	between: ['Hours in which downloads run', 'Such as 01:00-07:00, or always.'],
	'min-free-space': ['Free space to keep', 'Such as 1G: all downloads pause when less is free. 1G:3G resumes them at 3 GiB. 0 for never.'],
};

export class Limits {
	#saved = {};

	constructor(api, { onError, onChange }) {
		Object.assign(this, { api, onError, onChange });
		this.fields = Object.keys(settings).map((name) =>
			make('input', { id: `limit-${name}`, name, placeholder: 'default', 'aria-describedby': `help-${name}` }));
		$('limits-fields').append(...this.fields.flatMap((field) => {
			const [title, help] = settings[field.name];
			return [make('label', { htmlFor: field.id }, title), field, make('p', { id: `help-${field.name}`, className: 'muted' }, help)];
		}));
		$('limits-form').onsubmit = (event) => {
			event.preventDefault();
			this.#save();
		};
	}

	load = () => this.api.get('/v1/limits').then((texts) => this.#show(texts), this.onError);

	#show(texts) {
		this.#saved = texts;
		for (const field of this.fields) field.value = texts[field.name] ?? '';
	}

	async #save() {
		const changes = {};
		for (const field of this.fields) {
			field.ariaInvalid = null;
			const text = field.value.trim();
			if (text !== (this.#saved[field.name] ?? '')) changes[field.name] = text || 'default';
		}
		setText($('limits-saved'), '');
		setText($('limits-error'), '');
		try {
			this.#show(await this.api.patch('/v1/limits', changes));
			setText($('limits-saved'), 'Saved.');
			this.onChange();
		} catch (error) {
			let text = errorText(error);
			const field = this.fields.find(({ name }) => text.startsWith(`${name} `));
			if (field) {
				text = settings[field.name][0] + text.slice(field.name.length);
				field.ariaInvalid = 'true';
				field.focus();
			}
			setText($('limits-error'), text);
		}
	}
}
