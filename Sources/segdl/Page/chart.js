// Drawings of one file. Each function returns a text that says the same.
import { count, duration, size, speed } from './text.js';

/** A context in CSS pixels; null if the canvas is hidden. */
function prepare(canvas) {
	const { clientWidth: width, clientHeight: height } = canvas;
	if (!width) return null;
	const scale = devicePixelRatio;
	[canvas.width, canvas.height] = [width * scale, height * scale];
	const context = canvas.getContext('2d');
	context.scale(scale, scale);
	const style = getComputedStyle(canvas);
	context.font = '12px sans-serif';
	return { context, width, height, color: (name) => style.getPropertyValue(`--${name}`) };
}

// Milliseconds: the time axis, and the gap from which the line is interrupted.
const [span, gap] = [180_000, 4000];

export function drawSpeed(canvas, samples) {
	const now = performance.now();
	const recent = samples.filter(({ at }) => now - at < span);
	const rates = recent.map(({ rate }) => rate).filter(Boolean);
	const peak = Math.max(1024, ...rates);
	const view = prepare(canvas);
	if (view) {
		const { context, width, height, color } = view;
		const bottom = height - 18;
		const x = (at) => width * (1 - (now - at) / span);
		const y = (rate) => bottom - (bottom - 18) * (rate / peak);
		context.fillStyle = color('line');
		for (const part of [0, 0.5, 1]) context.fillRect(0, y(peak * part), width, 1);
		context.strokeStyle = color('accent');
		context.lineWidth = 2;
		context.beginPath();
		recent.forEach(({ at, rate }, index) => {
			if (index && at - recent[index - 1].at < gap) context.lineTo(x(at), y(rate));
			else context.moveTo(x(at), y(rate));
		});
		context.stroke();
		context.fillStyle = color('muted');
		context.fillText(speed(peak), 0, 12);
		context.fillText(`${duration(span / 1000)} ago`, 0, height - 4);
		context.textAlign = 'right';
		context.fillText('now', width, height - 4);
	}
	if (!rates.length) return 'not measured in the last minutes';
	return `average ${speed(rates.reduce((a, b) => a + b) / rates.length)}, highest ${speed(peak)}`;
}

const states = { done: 'done', fetching: 'being fetched', retrying: 'to be tried again', waiting: 'waiting' };
// Pixels from one block to the next, and of a block.
const [pitch, edge] = [12, 10];

export function drawSegments(canvas, segments, total) {
	segments = segments.map((each) => ({ ...each, end: each.end ?? total })).sort((a, b) => a.start - b.start);
	const view = prepare(canvas);
	if (view && total > 0) {
		const { context, width, height, color } = view;
		const perLine = Math.floor(width / pitch);
		const blocks = perLine * Math.floor(height / pitch);
		const length = total / blocks;
		let first = 0;
		for (let block = 0; block < blocks; block++) {
			const [low, high] = [block * length, (block + 1) * length];
			while (first < segments.length && segments[first].end <= low) first++;
			const bytes = { done: 0, fetching: 0, retrying: 0, waiting: 0 };
			for (let index = first; index < segments.length && segments[index].start < high; index++) {
				const { start, position, end, state } = segments[index];
				const [from, to] = [Math.max(start, low), Math.min(end, high)];
				const middle = state === 'done' ? to : Math.min(Math.max(position, from), to);
				bytes.done += middle - from;
				bytes[state] += to - middle;
			}
			const [x, y] = [(block % perLine) * pitch, Math.floor(block / perLine) * pitch];
			// The rest has the color of most of it.
			const { done, ...missing } = bytes;
			context.fillStyle = color(Object.keys(missing).reduce((a, b) => (missing[b] > missing[a] ? b : a), 'waiting'));
			context.fillRect(x, y, edge, edge);
			context.fillStyle = color('done');
			context.fillRect(x, y, edge * Math.min(done / length, 1), edge);
		}
	}
	const parts = Object.entries(states).map(([state, text]) => [segments.filter((each) => each.state === state).length, text])
		.filter(([number]) => number).map(([number, text]) => `${number} ${text}`);
	const missing = segments.reduce((sum, { state, position, end }) => sum + (state === 'done' ? 0 : end - position), 0);
	return `${count(segments.length, 'segment')}: ${parts.join(', ')}${missing ? `; ${size(missing)} missing` : ''}`;
}
