import SegmentedDownloadService

/// A JSON-RPC message. What is read is JSON within the limits, and is the same when it is written and read again; what is
/// JSON within the limits is read.
enum RPCMessageProperties {
    static func check(_ bytes: [UInt8]) throws(Violation) {
        let problem = RPCText.problem(in: bytes)
        let value = RPCValue(parsing: bytes)
        let isText = String(validating: bytes, as: UTF8.self) != nil
        try require(isText || problem != nil, "text that is not UTF-8 is accepted")
        guard isText else { return try require(value == nil, "text that is not UTF-8 is read") }
        let reference = ReferenceJSON(bytes)
        if let value {
            try require(problem == nil, "\(problem.map { "\($0)" } ?? "") is no obstacle")
            try require(reference != nil, "a text that is not JSON is read as \(value)")
            try self.checkUse(of: value)
        } else if let reference, problem == nil {
            try require(reference.isUnpredictable, "a JSON text is not read")
        }
        guard let reference else { return }
        try require(
            problem == .depth || problem == .values || problem == .length || problem == .control
                || reference.depthMax <= RPCText.depthMax, "a depth of \(reference.depthMax) is accepted")
        try require(
            problem != .depth || reference.depthMax > RPCText.depthMax, "a depth of \(reference.depthMax) is refused")
    }

    /// Whether two values are the same but for the form of their numbers.
    private static func isSame(_ left: RPCValue, _ right: RPCValue) -> Bool {
        switch (left, right) {
        case (.int(let left), .double(let right)), (.double(let right), .int(let left)): Double(left) == right
        case (.array(let left), .array(let right)):
            left.count == right.count && zip(left, right).allSatisfy { Self.isSame($0, $1) }
        case (.object(let left), .object(let right)):
            left.count == right.count
                && left.allSatisfy { key, value in right[key].map { Self.isSame(value, $0) } ?? false }
        default: left == right
        }
    }

    private static func checkUse(of value: RPCValue) throws(Violation) {
        if let written = value.bytes {
            let again = RPCValue(parsing: written)
            try require(
                again.map { Self.isSame($0, value) } ?? false || RPCText.problem(in: written) == .length,
                "\(value) is \(again.map { "\($0)" } ?? "nothing") when it is written and read again")
        }
        // As a method reads its parameters: an error, never a trap.
        let values: [RPCValue] = if case .array(let values) = value { values } else { [value] }
        let parameters = RPCParameters(values: values)
        for index in 0...values.count {
            _ = try? parameters.string(index)
            _ = try? parameters.integer(index, atLeast: 0)
            _ = try? parameters.integerIfAny(index)
            _ = try? parameters.strings(index)
            _ = try? parameters.keys(index)
            _ = try? parameters.objectIfAny(index)
        }
    }
}
