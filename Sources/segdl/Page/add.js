// The dialog that adds downloads, and files dropped on the page.
import { Submitter } from './api.js';
import { $, make, setText } from './dom.js';
import { clean, count, size } from './text.js';
import { errorText } from './store.js';
import { parseList, parseMetalink } from './input.js';

// 8 MiB: a metalink of 10,000 files.
const fileMax = 8 << 20;
// More names of a metalink file would make the dialog slow.
const namesMax = 100;

export class AddDialog {
	#files = [];
	#isBusy = false;
	#isStopping = false;

	constructor(api, { onAdded, isReady }) {
		Object.assign(this, { submitter: new Submitter(api), onAdded, isReady });
		const canDrop = () => isReady() && !this.#isBusy;
		$('urls').oninput = () => this.#update();
		$('add-form').onsubmit = (event) => {
			event.preventDefault();
			if (!this.#isBusy) this.#add();
		};
		$('add-close').onclick = () => (this.#isBusy ? this.#stop() : $('add-dialog').close());
		$('add-dialog').onclose = () => {
			if (this.#isBusy) this.#stop();
			// After the end of a session, the form stays as it is.
			else if (isReady()) this.#setFiles([]);
		};
		$('file').onchange = () => this.#read($('file').files);
		window.ondragover = (event) => {
			event.preventDefault();
			document.body.classList.toggle('dropping', canDrop());
		};
		window.ondragleave = () => document.body.classList.remove('dropping');
		window.ondrop = (event) => {
			event.preventDefault();
			document.body.classList.remove('dropping');
			if (!canDrop()) return;
			this.open();
			const { files } = event.dataTransfer;
			if (files.length) this.#read(files);
			else this.#append(event.dataTransfer.getData('text'));
		};
	}

	open() {
		if (!$('add-dialog').open) $('add-dialog').showModal();
	}

	#append(text) {
		$('urls').value = $('urls').value.replace(/([^\n])$/, '$1\n') + text;
		this.#update();
	}

	async #read(files) {
		$('add-button').disabled = true;
		try {
			for (const file of files) {
				if (file.size > fileMax) throw new Error(`${clean(file.name)} is larger than ${size(fileMax)}.`);
				const text = await file.text();
				if (/\.(meta4|metalink)$/i.test(file.name)) this.#setFiles([...this.#files, ...parseMetalink(text)]);
				else this.#append(text);
			}
		} catch (error) {
			this.#fail(errorText(error));
		}
		$('file').value = '';
		$('add-button').disabled = false;
	}

	#setFiles(files) {
		this.#files = files;
		$('from-metalink').hidden = !files.length;
		const names = files.slice(0, namesMax).map((file) => `${clean(file.options.out)} ${size(file.size)}`);
		if (files.length > namesMax) names.push(`and ${count(files.length - namesMax, 'more file')}`);
		$('metalink-files').replaceChildren(...names.map((name) => make('li', {}, name)));
		this.#update();
	}

	#fail = (text = '') => setText($('add-error'), text);

	#update() {
		this.#fail();
		const text = $('urls').value.trim();
		$('single').disabled = this.#files.length > 0 || text.includes('\n');
		if (!text && !this.#files.length) this.submitter.forget();
	}

	/** The form cannot change while its downloads are added. */
	#setBusy(isBusy) {
		this.#isBusy = isBusy;
		this.#isStopping = false;
		// The fields that are disabled would lose the focus.
		if (isBusy) $('add-close').focus();
		setText($('add-close'), isBusy ? 'Stop' : 'Close');
		$('add-fields').disabled = $('add-button').disabled = isBusy;
		$('add-bar').hidden = true;
		setText($('add-progress'), '');
		window.onbeforeunload = isBusy ? (event) => event.preventDefault() : null;
	}

	#stop() {
		this.#isStopping = true;
		setText($('add-close'), 'Stopping…');
	}

	#showProgress(added, total) {
		$('add-bar').hidden = false;
		$('add-bar').value = added / total;
		setText($('add-progress'), `${added.toLocaleString()} of ${total.toLocaleString()} added`);
	}

	/** What the form describes, in its order. */
	#entries() {
		const common = {};
		for (const name of $('single').disabled ? ['dir'] : ['dir', 'out', 'checksum']) {
			if ($(name).value.trim()) common[name] = $(name).value.trim();
		}
		return [...parseList($('urls').value), ...this.#files].map((file) => {
			const { url, mirrors, options, line } = file;
			const key = JSON.stringify([url, mirrors, options]);
			return { file, line, key, download: { url, mirrors, options: { ...common, ...options } } };
		});
	}

	async #add() {
		this.#fail();
		let entries;
		try {
			entries = this.#entries();
			if (!entries.length) throw new Error('Enter a URL.');
		} catch (error) {
			return this.#fail(errorText(error));
		}
		this.#setBusy(true);
		const total = entries.length;
		const { rest, error, refused } = await this.submitter.submit(entries, {
			paused: $('add-paused').checked,
			first: $('add-first').checked,
			proceed: (added, pieces) => {
				if (added || pieces > 1) this.#showProgress(added, total);
				return !this.#isStopping;
			},
		});
		const hasFocus = $('add-close') === document.activeElement;
		this.#setBusy(false);
		const place = this.#keep(entries, rest, refused);
		if (total > rest.length) this.onAdded(total - rest.length);
		if (!rest.length) return $('add-dialog').close();
		this.#fail(this.#problem(error, place, rest.length, total));
		if (this.isReady()) this.open();
		if (hasFocus) $('urls').focus();
	}

	/**
	 * Leaves in the form what was not added, and selects the line that was refused.
	 * @returns which entry of the form was refused, in words.
	 */
	#keep(entries, rest, refused) {
		if (!rest.length) for (const id of ['urls', 'out', 'checksum']) $(id).value = '';
		const added = new Set(entries).difference(new Set(rest));
		const lines = new Set([...added].map(({ line }) => line));
		const kept = $('urls').value.split('\n').filter((_, line) => !lines.has(line));
		$('urls').value = kept.join('\n');
		$('urls').setSelectionRange(0, 0);
		const files = new Set(rest.map(({ file }) => file));
		this.#setFiles(this.#files.filter((file) => files.has(file)));
		if (!refused) return '';
		const { file, line } = refused;
		if (file.options) return clean(file.options.out);
		const index = line - [...lines].filter((other) => other < line).length;
		const start = kept.slice(0, index).join('\n').length + (index ? 1 : 0);
		$('urls').setSelectionRange(start, start + kept[index].length);
		$('urls').scrollTop = ($('urls').scrollHeight * index) / kept.length;
		return `Line ${index + 1}`;
	}

	/** What was not added, and why. */
	#problem(error, place, left, total) {
		const { unconfirmed } = this.submitter;
		const text = error ? errorText(error) : 'You have stopped it.';
		return [
			total > 1 && `${total === left ? 'None' : (total - left).toLocaleString()} of ${count(total, 'download')} added.`,
			total > 1 && place ? `${place}: ${text}` : text,
			total > 1 && `${left.toLocaleString()} ${left === 1 ? 'is' : 'are'} ${unconfirmed ? '' : 'not added, and '}still in this form.`,
			unconfirmed && `${unconfirmed.toLocaleString()} of these may be in the queue already, because the service has not answered. Choose Add again: none is added twice.`,
		].filter(Boolean).join(' ');
	}
}
