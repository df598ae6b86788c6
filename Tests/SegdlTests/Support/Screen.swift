/// The subset of a terminal that the command uses: it wraps, scrolls, moves up and clears.
struct Screen {
    let columns: Int
    let rows: Int
    /// The lines that scrolled out at the top.
    private(set) var history: [String] = []
    private var cells: [[Character]]
    private var row = 0
    private var column = 0

    init(columns: Int, rows: Int) {
        self.columns = columns
        self.rows = rows
        self.cells = Array(repeating: [], count: rows)
    }

    /// Every line from the first one written, without trailing blanks.
    var lines: [String] {
        let lines = self.history + self.cells.map { String($0) }
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

    private mutating func clearLine() {
        self.cells[self.row] = Array(self.cells[self.row].prefix(self.column))
    }

    private mutating func put(_ character: Character) {
        if self.column == self.columns {
            self.column = 0
            self.advance()
        }
        let padding = self.column - self.cells[self.row].count
        if padding > 0 { self.cells[self.row] += Array(repeating: " ", count: padding) }
        if self.column < self.cells[self.row].count {
            self.cells[self.row][self.column] = character
        } else {
            self.cells[self.row].append(character)
        }
        self.column += 1
    }

    private mutating func advance() {
        guard self.row == self.rows - 1 else {
            self.row += 1
            return
        }
        self.history.append(String(self.cells.removeFirst()))
        self.cells.append([])
    }
}
