extension Behaviour {
    /// Parses the behaviour from a request's target.
    init(_ request: OriginRequest) throws {
        let segment = request.path.split(separator: "/").first ?? ""
        self.init(size: try BehaviourValue(key: "SIZE", bytes: Array(segment.utf8)).byteCount())

        var seen: Set<Substring> = []
        for item in request.queryItems {
            let value = BehaviourValue(item: item)
            guard seen.insert(value.key).inserted || Self.repeatable.contains(value.key) else {
                throw value.error("is a duplicate")
            }
            guard try self.readContent(value) || self.readPace(value) || self.readRefusal(value) || self.readHead(value)
            else {
                throw BehaviourError(description: "The key '\(value.key)' is unknown.")
            }
        }
    }

    private static let repeatable: Set<Substring> = [
        "etag-raw", "modified-raw", "fail", "field", "ranges", "redirect", "raw", "stall-after", "reset-after",
        "close-after",
    ]

    /// Each reader returns whether the key is one of its own.
    private mutating func readContent(_ value: BehaviourValue) throws -> Bool {
        switch value.key {
        case "seed": self.seed = try value.integer()
        case "etag": self.entityTag = EntityTag(value.text)
        case "last-modified": self.lastModified = value.text == "none" ? .none : .at(unixSeconds: try value.integer())
        case "etag-raw": self.rawEntityTags.append(value.bytes)
        case "modified-raw": self.rawModifications.append(value.bytes)
        case "nodes": self.nodes = try value.fields(1...16).map { try $0.integer() }
        case "type": self.contentType = value.text
        case "encoding": self.contentEncoding = value.text
        case "disposition": self.disposition = value.bytes
        case "change-after":
            let fields = try value.fields(2...2)
            self.changeAfterRequests = Change(trigger: try fields[0].integer(), seed: try fields[1].integer())
        case "change-at", "overwrite-at":
            let fields = try value.fields(2...2)
            self.changeAfterBytes = Change(trigger: try fields[0].byteCount(), seed: try fields[1].integer())
            self.isOverwritten = value.key == "overwrite-at"
        case "empty":
            guard value.text == "200" else { throw value.error("is not 200") }
            self.isEmptyAnswered = true
        default: return false
        }
        return true
    }

    private mutating func readPace(_ value: BehaviourValue) throws -> Bool {
        switch value.key {
        case "rate": self.rate = try value.positiveByteCount()
        case "total-rate": self.totalRate = try value.positiveByteCount()
        case "slow":
            let fields = try value.fields(2...2)
            self.slow = Slow(ordinal: try fields[0].integer(), rate: try fields[1].positiveByteCount())
        case "latency": self.latency = try value.duration()
        case "slow-head": self.headByteInterval = try value.duration()
        case "stall-after": self.cuts.append(try Self.cut(value, .stall))
        case "reset-after": self.cuts.append(try Self.cut(value, .reset))
        case "close-after": self.cuts.append(try Self.cut(value, .close))
        case "stall-at": self.stallsAt = try value.byteCount()
        case "close-notify":
            guard value.text == "no" else { throw value.error("is not no") }
            self.hasCloseNotify = false
        default: return false
        }
        return true
    }

    private mutating func readRefusal(_ value: BehaviourValue) throws -> Bool {
        switch value.key {
        case "drop": self.drop = try value.count()
        case "no-answer": self.noAnswer = try value.count()
        case "limit": self.limit = Int(try value.integer(UInt32.self))
        case "limit-status": self.limitStatus = value.text == "reset" ? nil : try value.status()
        case "fail":
            let fields = try value.fields(2...3)
            let skip = fields.count > 2 ? Int(try fields[2].integer(UInt32.self)) : 0
            self.failures.append(Failure(status: try fields[0].status(), count: try fields[1].count(), skip: skip))
        case "fail-range":
            let fields = try value.fields(2...2)
            self.failRange = FailRange(offset: try fields[0].byteCount(), status: try fields[1].status())
        case "retry-after": self.retryAfter = value.bytes
        case "auth": self.credentials = value.bytes
        case "expires": self.tokenLifetime = try value.duration()
        case "token": self.token = .milliseconds(try value.integer(Int64.self))
        case "redirect":
            let fields = try value.fields(2...2)
            self.redirects.append(Redirect(status: try fields[0].status(), target: .location(fields[1].bytes)))
        case "redirect-to-self": self.redirects = [Redirect(status: try value.status(), target: .plainSelf)]
        case "redirect-hops":
            let hops = try value.integer(Int.self)
            if hops > 0 { self.redirects = [Redirect(status: 302, target: .hops(hops))] }
        case "redirect-loop":
            _ = try value.flag()
            self.redirects = [Redirect(status: 302, target: .loop)]
        default: return false
        }
        return true
    }

    private mutating func readHead(_ value: BehaviourValue) throws -> Bool {
        switch value.key {
        case "ranges": self.rangeFaults.append(try RangeFault(value))
        case "if-range":
            switch value.text {
            case "ignore": self.ifRange = .ignored
            case "broken": self.ifRange = .broken
            default: throw value.error("is neither ignore nor broken")
            }
        case "length":
            let fields = try value.fields(1...2)
            switch (fields[0].text, fields.count) {
            case ("none", 1): self.framing = .closing
            case ("chunked", 1): self.framing = .chunked
            case ("chunked-cut", 2):
                self.framing = .chunked
                self.cuts.append(Cut(length: try fields[1].byteCount(), count: .all, ending: .close))
            case ("wrong", 2): self.framing = .wrong(excess: UInt64(try fields[1].byteCount()))
            case ("two", 1): self.framing = .two
            case ("negative", 1): self.framing = .negative
            case ("huge", 1): self.framing = .huge
            case ("both", 1): self.framing = .both
            default: throw value.error("is unknown")
            }
        case "endless": if try value.flag() { self.framing = .endless }
        case "head-size": self.headSizeMin = Int(try value.byteCount())
        case "head-fields": self.headFieldCount = Int(try value.integer(UInt32.self))
        case "interim": self.interimCount = Int(try value.integer(UInt32.self))
        case "field":
            let fields = try value.fields(2...2)
            self.fields.append(AnswerHead.Field(name: fields[0].text, value: fields[1].bytes))
        case "status-line": self.statusLine = value.bytes
        case "raw": self.rawAnswers.append(value.bytes)
        case "garbage": self.isGarbage = try value.flag()
        case "http09": self.isHTTP09 = try value.flag()
        default: return false
        }
        return true
    }

    private static func cut(_ value: BehaviourValue, _ ending: Answer.Ending) throws -> Cut {
        let fields = try value.fields(1...2)
        let count = fields.count > 1 ? try fields[1].count() : .first(1)
        return Cut(length: try fields[0].byteCount(), count: count, ending: ending)
    }
}
