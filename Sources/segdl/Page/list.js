// The queue as a grid of which only the visible rows exist.
import { $, foreign, make, setText } from './dom.js';
import { clean, duration, fileName, sizeOf, speed } from './text.js';
import { heldText, messageText, remedyText } from './store.js';

// Rows beyond both edges, so that scrolling shows no gap before the next frame.
const overscan = 6;
const columns = { name: 'Name', bar: 'Progress', size: 'Size', rate: 'Speed', left: 'Time left', connections: 'Conn.', state: 'State' };

class Row {
	constructor() {
		this.cells = Object.fromEntries(Object.keys(columns).map((name) => [name, make('div', { className: name, role: 'gridcell' })]));
		this.title = foreign('', 'title');
		this.sub = foreign('', 'sub');
		this.remedy = foreign('', 'remedy');
		this.fill = make('span', { className: 'fill' });
		this.percent = make('span', { className: 'percent' });
		this.cells.name.append(make('span', { className: 'box' }), this.title, make('span', { className: 'line' }, this.sub, this.remedy));
		this.cells.bar.append(make('span', { className: 'track' }, this.fill), this.percent);
		this.element = make('div', { role: 'row' }, ...Object.values(this.cells));
	}

	show(item, index, top, isSelected, isCurrent, held) {
		const { element, cells } = this;
		const { record, fraction } = item;
		const { state, error } = record;
		element.style.transform = `translateY(${top}px)`;
		element.id = `row-${record.id}`;
		element.dataset.id = record.id;
		element.ariaRowIndex = index + 2;
		element.ariaSelected = isSelected;
		element.className = `row ${state} ${isSelected ? 'selected' : ''} ${isCurrent ? 'current' : ''}`;
		setText(this.title, clean(fileName(record), 500));
		const failure = state === 'failed' && error;
		setText(this.sub, failure ? messageText(failure)
			: state === 'waiting' && held ? `Waiting: ${heldText(held)}` : clean(record.url, 500));
		setText(this.remedy, failure ? remedyText(failure) : '');
		this.fill.style.setProperty('--part', fraction || 0);
		setText(this.percent, fraction >= 0 ? `${Math.floor(fraction * 100)} %` : '');
		setText(cells.size, sizeOf(record.bytes_done, record.bytes_total));
		const { rate, eta, connections } = state === 'active' ? record : {};
		setText(cells.rate, speed(rate));
		setText(cells.left, duration(eta));
		setText(cells.connections, String(connections || ''));
		setText(cells.state, item.stateText);
	}
}

export class QueueList {
	selected = new Set();
	current = null;
	#anchor = null;
	#rows = new Map();
	#height = 1;
	/** Where the current row is, or was before it left the queue. */
	#place = 0;

	constructor(store, actions) {
		Object.assign(this, { store, actions, grid: $('grid'), body: $('grid-body') });
		$('grid-head').append(...Object.entries(columns).map(([className, text]) => make('div', { className, role: 'columnheader' }, text)));
		this.grid.onscroll = () => this.draw();
		this.grid.onkeydown = (event) => this.#key(event);
		this.grid.onclick = (event) => this.#click(event);
		new ResizeObserver(() => this.draw()).observe(this.grid);
	}

	indexOf = (id) => this.store.order.findIndex((item) => item.record.id === id);
	selection = () => this.store.order.filter((item) => this.selected.has(item.record.id));

	prune() {
		for (const id of this.selected) if (!this.store.get(id)) this.selected.delete(id);
		if (!this.store.get(this.current)) this.current = null;
	}

	draw() {
		const { grid, body, current, selected, store: { order, service } } = this;
		grid.hidden = !order.length;
		if (!grid.offsetParent) return;
		const height = this.#height = getComputedStyle(grid).getPropertyValue('--row') * parseFloat(getComputedStyle(document.documentElement).fontSize);
		body.style.height = `${order.length * height}px`;
		grid.ariaRowCount = order.length + 1;
		const first = Math.max(Math.floor(grid.scrollTop / height) - overscan, 0);
		const last = Math.min(Math.ceil((grid.scrollTop + grid.clientHeight) / height) + overscan, order.length);
		const indices = new Set(Array.from({ length: Math.max(last - first, 0) }, (_, index) => first + index));
		// aria-activedescendant names an element that exists.
		const index = current ? this.indexOf(current) : -1;
		if (index >= 0) indices.add(this.#place = index);
		const rows = new Map();
		const wanted = new Set([...indices].map((index) => order[index].record.id));
		const spare = [...this.#rows].filter(([id]) => !wanted.has(id)).map(([, row]) => row);
		let next = body.firstElementChild;
		// The elements are in the order of the rows, for screen readers.
		for (const index of [...indices].sort((a, b) => a - b)) {
			const { id } = order[index].record;
			const row = this.#rows.get(id) ?? spare.pop() ?? new Row();
			rows.set(id, row);
			row.show(order[index], index, index * height, selected.has(id), id === current, service.held);
			if (row.element === next) next = next.nextElementSibling;
			else body.insertBefore(row.element, next);
		}
		for (const row of spare) row.element.remove();
		this.#rows = rows;
		if (index >= 0) grid.setAttribute('aria-activedescendant', `row-${current}`);
		else grid.removeAttribute('aria-activedescendant');
	}

	/** Selects rows; those from the anchor to `current` if `ids` is absent. */
	#select(current, ids) {
		if (!ids) {
			const [a, b] = [this.indexOf(this.#anchor ??= current), this.indexOf(current)].sort((a, b) => a - b);
			ids = this.store.order.slice(Math.max(a, 0), b + 1).map((item) => item.record.id);
		} else this.#anchor = current;
		this.selected = new Set(ids);
		this.current = current;
		this.actions.select();
		this.draw();
	}

	#toggle = (id) => this.#select(id, [...this.selected.symmetricDifference(new Set([id]))]);

	#click({ target, ctrlKey, metaKey, shiftKey }) {
		const id = target.closest('[data-id]')?.dataset.id;
		if (!id) return;
		if (target.matches('.box') || ctrlKey || metaKey) return this.#toggle(id);
		this.#select(id, shiftKey ? null : [id]);
		if (target.matches('.title')) this.actions.open();
	}

	#key(event) {
		const { store: { order }, actions, current } = this;
		if (!order.length) return;
		const { key, altKey, shiftKey } = event;
		const isCommand = event.ctrlKey || event.metaKey;
		const page = Math.floor(this.grid.clientHeight / this.#height) - 1;
		const step = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity }[key];
		if (altKey) {
			const direction = { ArrowUp: 'up', ArrowDown: 'down', Home: 'top' }[key];
			if (!direction) return;
			actions.move(direction);
		} else if (step) {
			const at = this.indexOf(current);
			// The row after one that has left the queue has its place.
			const from = at >= 0 ? at : this.#place - (step > 0 ? 1 : 0);
			const to = Math.min(Math.max(from + step, 0), order.length - 1);
			const { id } = order[to].record;
			this.reveal(to);
			this.#select(id, shiftKey ? null : isCommand ? this.selected : [id]);
		} else if (key === ' ' && current) this.#toggle(current);
		else if (key === 'a' && isCommand) this.#select(current, order.map((item) => item.record.id));
		else if (key === 'Escape') this.#select(current, []);
		else if (key === 'Enter' && current) actions.open();
		else if (key === 'Delete') actions.cancel();
		else return;
		event.preventDefault();
	}

	reveal(index) {
		const { grid } = this;
		const top = index * this.#height;
		const bottom = top + this.#height - grid.clientHeight + $('grid-head').offsetHeight;
		if (top < grid.scrollTop) grid.scrollTop = top;
		else if (bottom > grid.scrollTop) grid.scrollTop = bottom;
	}
}
