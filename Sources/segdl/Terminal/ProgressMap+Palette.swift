import SegmentedDownload

extension ProgressMap {
    /// What cells look like: every kind has a sign of its own, so that colours only say again what the signs say.
    struct Palette: Hashable {
        /// Whether the terminal shows more than ASCII.
        let isUTF8: Bool
        let hasColors: Bool

        init(isUTF8: Bool, hasColors: Bool) {
            self.isUTF8 = isUTF8
            self.hasColors = hasColors
        }

        init(_ terminal: Terminal) {
            self.init(isUTF8: terminal.isUTF8, hasColors: terminal.hasColors)
        }

        /// Of those beyond ASCII all are in the fonts of consoles, too: they are in the IBM PC's code page 437.
        func sign(_ cell: Cell) -> Character {
            switch (cell.fill, cell.state) {
            case (.all, _): self.isUTF8 ? "█" : "#"
            case (_, .retrying): "!"
            case (.some, _): self.isUTF8 ? "▄" : "+"
            case (.none, .fetching): self.isUTF8 ? "░" : "-"
            case (.none, .waiting), (.none, .done): self.isUTF8 ? "·" : "."
            }
        }

        /// Green, yellow or red of the eight that every terminal with colours has; nil where it has none.
        private func color(_ cell: Cell) -> Int? {
            guard self.hasColors else { return nil }
            return switch (cell.fill, cell.state) {
            case (.all, _): 32
            case (_, .retrying): 31
            case (_, .fetching): 33
            case (_, .waiting), (_, .done): nil
            }
        }

        /// Cells one after another; at the end no colour is left on.
        func text(_ cells: ArraySlice<Cell>) -> String {
            var text = ""
            var current: Int?
            for cell in cells {
                let color = self.color(cell)
                if color != current { text += Self.selecting(color) }
                current = color
                text.append(self.sign(cell))
            }
            return current == nil ? text : text + Self.selecting(nil)
        }

        /// SGR (ECMA-48, 8.3.117).
        private static func selecting(_ color: Int?) -> String { "\u{1B}[\(color ?? 0)m" }
    }
}
