@testable import segdl

/// The subset of a terminal that the command uses: it wraps, scrolls, moves up and clears.
struct Screen {
    let columns: Int
    let rows: Int
    /// The lines that scrolled out at the top.
    private(set) var history: [String] = []
    /// A character of two columns is followed by an empty cell.
    private var cells: [[String]]
    private var row = 0
    private var column = 0

    init(columns: Int, rows: Int) {
        self.columns = columns
        self.rows = rows
        self.cells = Array(repeating: [], count: rows)
    }

    /// Every line from the first one written, without trailing empty lines.
    var lines: [String] {
        let lines = self.history + self.cells.map { $0.joined() }
        return Array(lines.prefix((lines.lastIndex { !$0.isEmpty } ?? -1) + 1))
    }

    mutating func write(_ text: String) {
        var rest = Array(text.unicodeScalars.map { Character($0) })[...]
        while let character = rest.popFirst() {
            switch character {
            case "\r": self.column = 0
            case "\n":
                // The terminal's driver adds the return.
                self.column = 0
                self.advance()
            case "\u{1B}": self.apply(&rest)
            default: self.put(character)
            }
        }
    }

    private mutating func apply(_ rest: inout ArraySlice<Character>) {
        guard rest.popFirst() == "[" else { return }
        var number = ""
        while let character = rest.popFirst() {
            switch character {
            case "0"..."9": number.append(character)
            case "m": return  // Colours are ignored.
            case "A":
                self.row = max(self.row - (Int(number) ?? 1), 0)
                return
            case "K": return self.clearLine()
            case "J":
                self.clearLine()
                for below in self.cells.indices.dropFirst(self.row + 1) { self.cells[below] = [] }
                return
            default: return self.put("?")
            }
        }
    }

    /// After the last column was written, the cursor is still on it, as in xterm.
    private mutating func clearLine() {
        self.cells[self.row] = Array(self.cells[self.row].prefix(min(self.column, self.columns - 1)))
    }

    private mutating func put(_ character: Character) {
        let width = String(character).columns
        guard width > 0 else {
            // A combining mark belongs to the character before it.
            if self.column > 0 { self.cells[self.row][self.column - 1].append(character) }
            return
        }
        if self.column + width > self.columns {
            self.column = 0
            self.advance()
        }
        let padding = self.column + width - self.cells[self.row].count
        if padding > 0 { self.cells[self.row] += Array(repeating: " ", count: padding) }
        self.cells[self.row][self.column] = String(character)
        if width == 2 { self.cells[self.row][self.column + 1] = "" }
        self.column += width
    }

    private mutating func advance() {
        guard self.row == self.rows - 1 else {
            self.row += 1
            return
        }
        self.history.append(self.cells.removeFirst().joined())
        self.cells.append([])
    }
}
