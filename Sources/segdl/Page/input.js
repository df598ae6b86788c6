// Reads lists of URLs and metalink files.
import { clean, isClean, isHTTP } from './text.js';

/** @returns the files, each with the index of its line. */
export function parseList(text) {
	const files = [];
	text.replace(/^\uFEFF/, '').split('\n').forEach((line, index) => {
		const urls = line.split('\t').map((url) => url.trim()).filter(Boolean);
		if (!urls.length || urls[0].startsWith('#')) return;
		const wrong = urls.find((url) => !isHTTP(url));
		if (wrong) throw new Error(`Line ${index + 1}: “${clean(wrong, 80)}” is not an http or https URL.`);
		files.push({ url: urls[0], mirrors: urls.slice(1), line: index });
	});
	return files;
}

const oldNamespace = 'http://www.metalinker.org/';
const namespaces = ['urn:ietf:params:xml:ns:metalink', oldNamespace];
// The strongest first, with the number of hexadecimal digits.
const hashes = { 'sha-512': 128, 'sha-256': 64, 'sha-1': 40, md5: 32 };

/** Whether a path stays within the directory and names no hidden file, no option and no file of segdl. */
function isSafePath(path) {
	return isClean(path) && !/[\\:]/.test(path) && path.split('/').every((name) =>
		/^[^.~\s-]/.test(name) && !/[\s.]$|\.segdl(-part|-new)?$/i.test(name) && new TextEncoder().encode(name).length <= 240);
}

/** Reads a metalink file of version 4 (RFC 5854) or 3. */
export function parseMetalink(text) {
	const fail = (problem) => {
		throw new Error(`The metalink file ${problem}.`);
	};
	// A document type may define entities that grow without end.
	if (/<!(DOCTYPE|ENTITY)/i.test(text)) fail('has a document type, which is not allowed');
	const root = new DOMParser().parseFromString(text, 'application/xml').documentElement;
	if (root.localName !== 'metalink' || !namespaces.includes(root.namespaceURI) || root.querySelector('parsererror')) fail('is malformed');
	const children = (parent, name) => [...parent?.children ?? []].filter((each) => each.localName === name && each.namespaceURI === root.namespaceURI);
	const isOld = root.namespaceURI === oldNamespace;
	// Version 3 has one more level.
	const list = (parent, group, name) => children(isOld ? children(parent, group)[0] : parent, name);
	const files = list(root, 'files', 'file').map((file) => {
		const out = (file.getAttribute('name') ?? '').normalize();
		if (!isSafePath(out)) fail(`has a file name that is not allowed: “${clean(out, 120)}”`);
		const rank = (url) => isOld ? -url.getAttribute('preference') : Number(url.getAttribute('priority') ?? 999_999);
		const urls = list(file, 'resources', 'url').sort((a, b) => rank(a) - rank(b)).map((url) => url.textContent.trim());
		const [url, ...mirrors] = new Set(urls.filter((url) => isHTTP(url) && isClean(url)));
		if (!url) fail(`has no http or https URL for “${out}”`);
		const options = { out };
		const given = list(file, 'verification', 'hash');
		for (const [name, length] of Object.entries(hashes)) {
			const hash = given.find((hash) => hash.getAttribute('type')?.toLowerCase().replace('sha1', 'sha-1') === name);
			const digits = hash?.textContent.trim().toLowerCase();
			if (hash && (digits.length !== length || /[^0-9a-f]/.test(digits))) fail(`has a malformed ${name} for “${out}”`);
			if (hash) options.checksum ??= `${name.replace('-', '')}=${digits}`;
		}
		return { url, mirrors, options, size: parseInt(children(file, 'size')[0]?.textContent, 10) };
	});
	if (!files.length) fail('names no file');
	return files;
}
