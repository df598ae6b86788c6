// The dialog that adds downloads, and files dropped on the page.
import { $, make, setText } from './dom.js';
import { clean, size } from './text.js';
import { errorText } from './store.js';
import { parseList, parseMetalink } from './input.js';

// 8 MiB: a metalink of 10,000 files.
const fileMax = 8 << 20;

export class AddDialog {
	#files = [];

	constructor(api, { onAdded, isReady }) {
		Object.assign(this, { api, onAdded });
		$('urls').oninput = () => this.#update();
		$('add-form').onsubmit = (event) => {
			event.preventDefault();
			this.#add();
		};
		$('add-close').onclick = () => $('add-dialog').close();
		$('add-dialog').onclose = () => this.#setFiles([]);
		$('file').onchange = () => this.#read($('file').files);
		window.ondragover = (event) => {
			event.preventDefault();
			document.body.classList.toggle('dropping', isReady());
		};
		window.ondragleave = () => document.body.classList.remove('dropping');
		window.ondrop = (event) => {
			event.preventDefault();
			document.body.classList.remove('dropping');
			if (!isReady()) return;
			this.open();
			const { files } = event.dataTransfer;
			if (files.length) this.#read(files);
			else this.#append(event.dataTransfer.getData('text'));
		};
	}

	open() {
		if (!$('add-dialog').open) $('add-dialog').showModal();
		this.#update();
	}

	#append(text) {
		$('urls').value = $('urls').value.replace(/([^\n])$/, '$1\n') + text;
		this.#update();
	}

	async #read(files) {
		try {
			for (const file of files) {
				if (file.size > fileMax) throw new Error(`${clean(file.name)} is larger than ${size(fileMax)}.`);
				const text = await file.text();
				if (/\.(meta4|metalink)$/i.test(file.name)) this.#setFiles([...this.#files, ...parseMetalink(text)]);
				else this.#append(text);
			}
		} catch (error) {
			this.#fail(error);
		}
		$('file').value = '';
	}

	#setFiles(files) {
		this.#files = files;
		$('from-metalink').hidden = !files.length;
		$('metalink-files').replaceChildren(...files.map((file) => make('li', {}, `${clean(file.options.out)} ${size(file.size)}`)));
		this.#update();
	}

	#fail = (error) => setText($('add-error'), error ? errorText(error) : '');

	#update() {
		this.#fail();
		$('single').disabled = this.#files.length > 0 || $('urls').value.trim().includes('\n');
	}

	async #add() {
		const button = $('add-button');
		this.#fail();
		button.disabled = true;
		try {
			const files = [...parseList($('urls').value), ...this.#files];
			if (!files.length) throw new Error('Enter a URL.');
			const common = {};
			for (const name of $('single').disabled ? ['dir'] : ['dir', 'out', 'checksum']) {
				if ($(name).value.trim()) common[name] = $(name).value.trim();
			}
			const downloads = files.map(({ url, mirrors, options }) => ({ url, mirrors, options: { ...common, ...options } }));
			const { ids } = await this.api.post('/v1/downloads', { downloads, paused: $('add-paused').checked, first: $('add-first').checked });
			for (const id of ['urls', 'out', 'checksum']) $(id).value = '';
			$('add-dialog').close();
			this.onAdded(ids.length);
		} catch (error) {
			this.#fail(error);
		}
		button.disabled = false;
	}
}
