package import HTTPTypes

/// The status and fields of a final response, as received from the transport.
package struct ResponseHead: Hashable, Sendable {
    package let status: Int
    package let fields: HTTPFields
    /// When it was received, by the clock of this machine; absent in simulations.
    package let received: HTTPDate?

    package init(status: Int, fields: HTTPFields = [:], received: HTTPDate? = nil) {
        self.status = status
        self.fields = fields
        self.received = received
    }

    /// Whether the status says that the body is the whole file. A 2xx that is not known is treated as 200 (RFC 9110 §15). 203 is
    /// what a proxy has changed, and 201 and 207 have the file too. 202 has none yet, 204 and 205 never.
    var isWhole: Bool {
        switch self.status {
        case 200, 201, 203, 207...299: true
        default: false
        }
    }

    /// The date at which the response was sent, absent unless there is exactly one valid `Date` field.
    var date: HTTPDate? { self.single(.date).flatMap { HTTPDate(fieldValue: $0) } }

    /// All values of a field in the order received, one for each field line.
    func values(_ name: HTTPField.Name) -> [String] {
        self.fields[values: name]
    }

    /// The value of a field that occurs exactly once; nil otherwise.
    func single(_ name: HTTPField.Name) -> String? {
        let values = self.fields[values: name]
        return values.count == 1 ? values[0] : nil
    }
}
