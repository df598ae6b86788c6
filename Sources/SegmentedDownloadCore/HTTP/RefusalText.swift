import HTTPTypes

/// What a server says about a refusal, apart from the status.
package enum RefusalText {
    /// 300 scalars: sentences of the Hugging Face Hub and of S3, with the address of a page, are shorter.
    package static let lengthMax = 300

    /// Fields with a sentence or a code: of the Hugging Face Hub, of S3 and of Azure. The first one that is there is shown.
    private static let names = [
        "X-Error-Message", "x-amz-error-message", "X-Error-Code", "x-amz-error-code", "x-ms-error-code",
    ].compactMap { HTTPField.Name($0) }

    /// The sentence or code in a response's fields; nil if there is none.
    package static func inFields(of head: ResponseHead) -> String? {
        for name in self.names {
            if let text = head.values(name).first(where: { !$0.isEmpty }) { return text }
        }
        return nil
    }
}

extension RangeResponse {
    /// Whether it is a refusal whose body may say why. A temporary one is repeated instead.
    package var isExplainable: Bool {
        switch self {
        case .unauthorized, .rejected: true
        case .partial, .whole, .notModified, .unsatisfiable, .changed, .moved, .ignoresRanges, .redirected, .refused,
            .malformed:
            false
        }
    }

    /// The refusal, with what its body says.
    package func saying(_ text: String) -> RangeResponse {
        switch self {
        case .rejected(let status, _): return .rejected(status: status, saying: text)
        case .unauthorized(let status, let challenge):
            let said = [challenge, text].compactMap(\.self).joined(separator: "; ")
            return .unauthorized(status: status, challenge: said)
        case .partial, .whole, .notModified, .unsatisfiable, .changed, .moved, .ignoresRanges, .redirected, .refused,
            .malformed:
            return self
        }
    }
}
