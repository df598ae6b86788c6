package import HTTPTypes

/// The status and fields of a final response, as received from the transport.
package struct ResponseHead: Hashable, Sendable {
    package let status: Int
    package let fields: HTTPFields

    package init(status: Int, fields: HTTPFields = [:]) {
        self.status = status
        self.fields = fields
    }

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
