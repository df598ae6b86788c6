// Texts for people.

// Control, bidirectional and invisible characters, as in PrintableText.swift, and lone surrogates.
const unprintable = /[\0-\x1F\x7F-\x9F\xAD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F\u2028-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\uFFF0-\uFFF8\u{1BCA0}-\u{1BCA3}\u{1D173}-\u{1D17A}\u{E0000}-\u{E0FFF}\p{Cs}]/gu;

/** A text of other origin in a form that is safe to show. */
export function clean(text, limit = 4096) {
	text = String(text ?? '');
	const end = text.length > limit ? '…' : '';
	return text.slice(0, limit).replace(unprintable, (c) => `\\u{${c.codePointAt(0).toString(16).toUpperCase()}}`) + end;
}

export const isClean = (text) => clean(text, Infinity) === text;

/** Unknown sizes, speeds and durations are empty texts. */
export function size(bytes) {
	if (!Number.isFinite(bytes)) return '';
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
	let unit = 0;
	while (bytes >= (unit ? 1023.95 : 1024) && unit < 6) [bytes, unit] = [bytes / 1024, unit + 1];
	return `${bytes.toFixed(unit ? 1 : 0)} ${units[unit]}`;
}

/** Such as `1.2 of 5.0 MiB`. */
export function sizeOf(done, total) {
	const [a, b] = [size(done), size(total)];
	if (!a || !b || a === b) return b || (done ? a : '');
	const [number, unit] = a.split(' ');
	return `${b.endsWith(` ${unit}`) ? number : a} of ${b}`;
}

export const speed = (rate) => size(rate) && `${size(rate)}/s`;

/** Such as `1 h 02 min`. */
export function duration(seconds) {
	if (!Number.isFinite(seconds)) return '';
	const two = (number) => String(number % 60).padStart(2, '0');
	const [s, m, h] = [Math.ceil(seconds), Math.round(seconds / 60), Math.round(seconds / 3600)];
	if (s < 60) return `${s} s`;
	if (s < 3600) return `${Math.floor(s / 60)} min ${two(s)} s`;
	return h < 24 ? `${Math.floor(m / 60)} h ${two(m)} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
}

export const when = (seconds) => (seconds ? new Date(seconds * 1000).toLocaleString() : '');

export const count = (number, noun) => `${number.toLocaleString()} ${noun}${number === 1 ? '' : 's'}`;

/** From the URL if the file has no name yet. Not clean. */
export function fileName({ path = '', url = '' }) {
	const last = (text) => text.slice(text.lastIndexOf('/') + 1);
	const name = last(url.split(/[?#]/)[0]);
	try {
		return last(path) || decodeURIComponent(name) || url;
	} catch {
		return name;
	}
}

export function isHTTP(text) {
	return /^https?:\/\//i.test(text) && URL.canParse(text);
}
