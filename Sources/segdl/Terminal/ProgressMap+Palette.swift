import SegmentedDownload

extension ProgressMap {
    /// The characters and colours of cells. Every kind has its own character, so colours are not needed.
    struct Palette: Hashable {
        /// Whether the terminal shows characters beyond ASCII.
        let isUTF8: Bool
        let hasColors: Bool

        init(isUTF8: Bool, hasColors: Bool) {
            self.isUTF8 = isUTF8
            self.hasColors = hasColors
        }

        init(_ terminal: Terminal) {
            self.init(isUTF8: terminal.isUTF8, hasColors: terminal.hasColors)
        }

        /// The characters beyond ASCII are in code page 437 of the IBM PC, so console fonts have them too.
        func sign(_ cell: Cell) -> Character {
            switch (cell.fill, cell.state) {
            case (.all, _): self.isUTF8 ? "█" : "#"
            case (_, .retrying): "!"
            case (.some, _): self.isUTF8 ? "▄" : "+"
            case (.none, .fetching): self.isUTF8 ? "░" : "-"
            case (.none, .waiting), (.none, .done): self.isUTF8 ? "·" : "."
            }
        }

        /// Green, yellow or red of the eight standard colours; nil for the default colour.
        private func color(_ cell: Cell) -> Int? {
            guard self.hasColors else { return nil }
            return switch (cell.fill, cell.state) {
            case (.all, _): 32
            case (_, .retrying): 31
            case (_, .fetching): 33
            case (_, .waiting), (_, .done): nil
            }
        }

        /// The cells as text. The colour is reset at the end.
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
