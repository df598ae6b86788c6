// The service's HTTP API.

class APIError extends Error {
	constructor(status, { message = `The service answered ${status}`, hint, code } = {}) {
		super(message);
		Object.assign(this, { status, hint, code });
	}
}

// Three heartbeats of the service.
const silenceMax = 45_000;
// More than the service needs to add 10,000 downloads.
const requestMax = 120_000;

export class API {
	secret = '';

	async #fetch(path, { method, body, headers, signal }) {
		const response = await fetch(path, {
			method, signal, body: body && JSON.stringify(body), cache: 'no-store', credentials: 'omit', redirect: 'error',
			headers: { Authorization: `Bearer ${this.secret}`, ...(body && { 'Content-Type': 'application/json' }), ...headers },
		});
		if (response.ok) return response;
		const { error } = await response.json().catch(() => ({}));
		throw new APIError(response.status, error);
	}

	async #request(method, path, body) {
		const response = await this.#fetch(path, { method, body, signal: AbortSignal.timeout(requestMax) });
		return response.json();
	}

	get = (path) => this.#request('GET', path);
	post = (path, body) => this.#request('POST', path, body);
	patch = (path, body) => this.#request('PATCH', path, body);

	/** Until the connection ends. EventSource cannot send the secret in a header. */
	async events(lastID, { onOpen, onEvent, signal }) {
		const silence = new AbortController();
		let timer;
		const restart = () => {
			clearTimeout(timer);
			timer = setTimeout(() => silence.abort(), silenceMax);
		};
		try {
			restart();
			const response = await this.#fetch('/v1/events', {
				headers: { 'Last-Event-ID': lastID }, signal: AbortSignal.any([signal, silence.signal]),
			});
			onOpen();
			const read = eventParser(onEvent);
			const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
			for (;;) {
				const { done, value } = await reader.read();
				if (done) return;
				restart();
				read(value);
			}
		} finally {
			clearTimeout(timer);
		}
	}
}

/** https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation, with LF or CRLF. */
function eventParser(onEvent) {
	let rest = '';
	let event = { data: [] };
	return (text) => {
		const lines = (rest + text).split('\n');
		rest = lines.pop();
		for (const line of lines) {
			const [, field, value] = /^([^:\r]*)(?:: ?(.*?))?\r?$/.exec(line) ?? [];
			if (field === 'data') event.data.push(value);
			else if (field) event[field] = value;
			else if (!value && !line.startsWith(':')) {
				if (event.data.length) onEvent(event.event, JSON.parse(event.data.join('\n')), event.id);
				event = { data: [] };
			}
		}
	};
}
