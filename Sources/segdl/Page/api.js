// The service's HTTP API, and lists that are longer than one of its requests.

const again = 'The page connects again by itself. Try again when it is connected.';

class APIError extends Error {
	/** @param status 0 if there is no answer. */
	constructor(status, { message = `The service answered ${status}`, hint, code } = {}, cause) {
		super(message, { cause });
		Object.assign(this, { status, hint: hint ?? ([0, 503].includes(status) ? again : undefined), code });
	}

	/** Whether the request has had no effect, and will have none. */
	get isRefusal() {
		return this.status >= 400 && this.status < 500;
	}
}

// Three heartbeats of the service.
const silenceMax = 45_000;
// More than the service needs to act on 10,000 downloads.
const requestMax = 120_000;

export class API {
	secret = '';

	async #fetch(path, { method, body, headers, signal }) {
		const response = await fetch(path, {
			method, signal, body: body && JSON.stringify(body), cache: 'no-store', credentials: 'omit', redirect: 'error',
			headers: { Authorization: `Bearer ${this.secret}`, ...(body && { 'Content-Type': 'application/json' }), ...headers },
		});
		if (response.ok) return response;
		throw await errorOf(response);
	}

	async #request(method, path, body) {
		try {
			const response = await this.#fetch(path, { method, body, signal: AbortSignal.timeout(requestMax) });
			return await response.json();
		} catch (error) {
			if (error instanceof APIError) throw error;
			const isLate = error.name === 'TimeoutError';
			throw new APIError(0, { message: isLate ? `The service has not answered for ${requestMax / 1000} s` : 'The service cannot be reached' }, error);
		}
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

/** Some answers have no JSON: an empty body, or a line of text. */
async function errorOf(response) {
	const text = await response.text();
	try {
		return new APIError(response.status, JSON.parse(text).error);
	} catch {
		const isLine = /^[^<\n]{1,200}$/.test(text);
		return new APIError(response.status, isLine ? { message: `The service answered ${response.status}: ${text}` } : {});
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

// 256 KiB: the service accepts a body of 1 MiB, which must arrive within 10 s.
const pieceMax = 256 << 10;
// Answers that may be about one download of a piece; 413 also comes from proxies with a lower limit.
const divisible = [400, 403, 409, 413];

/** What one request adds. The service adds all of it or nothing, so the ID of the first download tells whether it did. */
class Piece {
	gid = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, '0')).join('');
	/** Whether it was sent before, and not answered. */
	isRepeated = false;

	constructor(entries) {
		this.entries = entries;
	}

	static divide(entries) {
		const pieces = [];
		const encoder = new TextEncoder();
		let length = Infinity;
		for (const entry of entries) {
			const more = encoder.encode(JSON.stringify(entry.download)).length + 1;
			if (length + more > pieceMax) {
				pieces.push(new Piece([]));
				length = 0;
			}
			pieces.at(-1).entries.push(entry);
			length += more;
		}
		return pieces;
	}

	halves() {
		const middle = this.entries.length >> 1;
		return [this.entries.slice(0, middle), this.entries.slice(middle)].map((entries) => new Piece(entries));
	}
}

/** Adds lists of downloads, one piece after another. */
export class Submitter {
	/** The piece that was sent last, if it was not answered. */
	#unconfirmed = null;

	constructor(api) {
		this.api = api;
	}

	/** How many downloads of the last list may be in the queue, although the service has not confirmed it. */
	get unconfirmed() {
		return this.#unconfirmed?.entries.length ?? 0;
	}

	forget() {
		this.#unconfirmed = null;
	}

	/**
	 * @param entries Each has the `download`, and a `key` by which it is found when it is added again.
	 * @param proceed Gets the number of entries that are added and the number of pieces; returns whether to add more.
	 * @returns the entries that are not added, the error, and which of them was refused, if it was one.
	 */
	async submit(entries, { paused, first, proceed }) {
		// Each piece comes before what is at the top of the queue, so the last one is sent first.
		let rest = first ? entries.toReversed() : entries;
		let error, refused;
		try {
			rest = await this.#withoutConfirmed(rest);
			const pieces = this.#pieces(rest);
			while (pieces.length && proceed(entries.length - rest.length, pieces.length)) {
				const [piece] = pieces;
				try {
					await this.#send(piece, paused, first);
					pieces.shift();
					rest = rest.slice(piece.entries.length);
				} catch (error) {
					if (!divisible.includes(error.status)) throw error;
					if (piece.entries.length === 1) {
						[refused] = piece.entries;
						throw error;
					}
					pieces.splice(0, 1, ...piece.halves());
				}
			}
		} catch (reason) {
			error = reason;
		}
		return { rest: first ? rest.toReversed() : rest, error, refused };
	}

	async #send(piece, paused, first) {
		const downloads = piece.entries.map(({ download }) => download);
		if (first) downloads.reverse();
		downloads[0] = { ...downloads[0], gid: piece.gid };
		try {
			await this.api.post('/v1/downloads', { downloads, paused, first });
		} catch (error) {
			piece.isRepeated ||= !error.isRefusal;
			// 400: a browser sends a request again if the connection ends before the answer, and then the ID is taken.
			if (piece.isRepeated || error.status === 400) {
				this.#unconfirmed = piece;
				const isAdded = await this.#isAdded(piece);
				if (isAdded || error.isRefusal) this.#unconfirmed = null;
				if (isAdded) return;
			}
			throw error;
		}
		this.#unconfirmed = null;
	}

	async #isAdded(piece) {
		try {
			await this.api.get(`/v1/downloads/${piece.gid}`);
			return true;
		} catch (error) {
			if (error.status === 400) return false;
			throw error;
		}
	}

	/** Without the entries that were added without a confirmation. */
	async #withoutConfirmed(rest) {
		const piece = this.#unconfirmed;
		if (!piece) {
			// If the service cannot be reached, it is certain that nothing is added.
			await this.api.get('/v1');
			return rest;
		}
		if (!(await this.#isAdded(piece))) return rest;
		this.#unconfirmed = null;
		const numbers = new Map();
		for (const { key } of piece.entries) numbers.set(key, (numbers.get(key) ?? 0) + 1);
		return rest.filter(({ key }) => {
			const number = numbers.get(key) ?? 0;
			numbers.set(key, number - 1);
			return number <= 0;
		});
	}

	/** The unconfirmed piece has its ID again, with which the service adds it once at most. */
	#pieces(rest) {
		const piece = this.#unconfirmed;
		if (!piece?.entries.every(({ key }, index) => key === rest[index]?.key)) {
			this.#unconfirmed = null;
			return Piece.divide(rest);
		}
		piece.entries = rest.slice(0, piece.entries.length);
		return [piece, ...Piece.divide(rest.slice(piece.entries.length))];
	}
}
