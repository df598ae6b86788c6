package import HTTPTypes

/// The status and fields of one final response, as the transport read them.
package struct ResponseHead: Hashable, Sendable {
    package let status: Int
    package let fields: HTTPFields

    package init(status: Int, fields: HTTPFields = [:]) {
        self.status = status
        self.fields = fields
    }

    /// Every value of a field in the order received; a field that came twice has two.
    func values(_ name: HTTPField.Name) -> [String] {
        self.fields[values: name]
    }

    /// The value of a field that came exactly once.
    func single(_ name: HTTPField.Name) -> String? {
        let values = self.fields[values: name]
        return values.count == 1 ? values[0] : nil
    }
}
