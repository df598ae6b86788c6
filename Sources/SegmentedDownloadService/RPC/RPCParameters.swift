import SegmentedDownload

/// Why a method failed, as aria2 reports it.
package struct RPCError: Error, Hashable {
    package let code: Int
    package let message: String

    /// - Parameter code: 1 for a method that failed; the negative ones are those of JSON-RPC 2.0.
    package init(_ message: String, code: Int = 1) {
        self.code = code
        self.message = message
    }

    package init(_ error: any Error) {
        switch error {
        case let error as RPCError: self = error
        case let error as DownloadError: self.init(error.message)
        default: self.init("internal error")
        }
    }

    package static let parse = RPCError("Parse error.", code: -32700)
    package static let invalidRequest = RPCError("Invalid Request.", code: -32600)
    package static let invalidParameters = RPCError("Invalid params.", code: -32602)
    package static let unauthorized = RPCError("Unauthorized")

    package var value: RPCValue { .object(["code": .int(Int64(self.code)), "message": .string(self.message)]) }
}

/// The parameters of a call without its token. The errors are aria2's.
package struct RPCParameters: Hashable, Sendable {
    package let values: [RPCValue]

    package init(values: [RPCValue]) { self.values = values }

    package func string(_ index: Int) throws(RPCError) -> String {
        guard case .string(let text) = try self.value(index) else { throw Self.wrongType(index) }
        return text
    }

    /// - Parameter minimum: The smallest number that is valid.
    package func integer(_ index: Int, atLeast minimum: Int = .min) throws(RPCError) -> Int {
        guard let number = try self.value(index).integer else { throw Self.wrongType(index) }
        guard number >= minimum else {
            throw RPCError(
                "The integer parameter at \(index) has invalid value: "
                    + "the value must be greater than or equal to \(minimum).")
        }
        return number
    }

    package func integerIfAny(_ index: Int) throws(RPCError) -> Int? {
        index < self.values.count ? try self.integer(index) : nil
    }

    package func array(_ index: Int) throws(RPCError) -> [RPCValue] {
        guard case .array(let values) = try self.value(index) else { throw Self.wrongType(index) }
        return values
    }

    /// The strings of an array. As in aria2, its other values are skipped.
    package func strings(_ index: Int) throws(RPCError) -> [String] {
        try self.array(index).compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    /// The names of the fields that the client asks for; empty for all.
    package func keys(_ index: Int) throws(RPCError) -> Set<String> {
        index < self.values.count ? Set(try self.strings(index)) : []
    }

    package func object(_ index: Int) throws(RPCError) -> [String: RPCValue] {
        guard case .object(let values) = try self.value(index) else { throw Self.wrongType(index) }
        return values
    }

    package func objectIfAny(_ index: Int) throws(RPCError) -> [String: RPCValue] {
        index < self.values.count ? try self.object(index) : [:]
    }

    private func value(_ index: Int) throws(RPCError) -> RPCValue {
        guard index < self.values.count else { throw RPCError("The parameter at \(index) is required but missing.") }
        return self.values[index]
    }

    private static func wrongType(_ index: Int) -> RPCError { RPCError("The parameter at \(index) has wrong type.") }
}
