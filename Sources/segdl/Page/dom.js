// Elements. Texts are set as text only, never as markup.

export const $ = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(properties)) {
		if (name in element) element[name] = value;
		else element.setAttribute(name, value);
	}
	element.append(...children);
	return element;
}

/** A text of other origin; `text` is clean. */
export const foreign = (text, className = '') => make('span', { className: `foreign ${className}` }, text);

/** Leaves an element alone that has the text already, for screen readers. */
export function setText(element, text) {
	if (element.textContent !== text) element.textContent = text;
}

/** Disables or enables a control. The focus of a control that is disabled goes to `next`. */
export function setDisabled(control, isDisabled, next) {
	const hasFocus = control === document.activeElement;
	control.disabled = isDisabled;
	if (isDisabled && hasFocus) next.focus();
}

/** Resolves to whether the user confirms, and whether partial files are to be deleted. */
export function confirm(title, text, hasDelete) {
	const dialog = $('confirm-dialog');
	setText($('confirm-title'), `${title}?`);
	setText($('confirm-text'), text);
	setText($('confirm-yes'), title);
	$('confirm-choice').hidden = !hasDelete;
	$('confirm-delete').checked = false;
	return new Promise((resolve) => {
		const close = (confirmed) => {
			resolve({ confirmed, isDeleting: $('confirm-delete').checked });
			dialog.close();
		};
		$('confirm-yes').onclick = () => close(true);
		$('confirm-no').onclick = dialog.oncancel = () => close(false);
		dialog.showModal();
	});
}
