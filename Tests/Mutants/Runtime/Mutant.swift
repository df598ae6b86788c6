import Glibc

/// Selects one of the compiled-in mutations. `segdl-mutants` adds this file to each mutated module.
///
/// Every function receives the number of its first mutation; further ones have the next numbers.
public enum Mutant {
    /// The active mutation, from `SEGDL_MUTANT`, and the map that notes which mutations were evaluated.
    private static nonisolated(unsafe) let state: (active: Int, seen: UnsafeMutablePointer<UInt8>?) = (
        getenv("SEGDL_MUTANT").flatMap { Int(String(cString: $0)) } ?? 0, Self.map()
    )

    /// Maps the file named by `SEGDL_MUTANTS_SEEN`, one byte per mutation; the notes survive a trap.
    private static func map() -> UnsafeMutablePointer<UInt8>? {
        guard let path = getenv("SEGDL_MUTANTS_SEEN") else { return nil }
        let file = open(path, O_RDWR)
        let length = lseek(file, 0, SEEK_END)
        guard file >= 0, length > 0 else { return nil }
        let memory = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
        return memory == MAP_FAILED ? nil : memory?.assumingMemoryBound(to: UInt8.self)
    }

    @inline(__always)
    static func isActive(_ number: Int) -> Bool {
        let state = Self.state
        if let seen = state.seen { seen[number] = 1 }
        return number == state.active
    }

    // MARK: Conditions

    public static func less<T: Comparable>(_ number: Int, _ a: T, _ b: T) -> Bool {
        Self.isActive(number) ? a <= b : a < b
    }
    public static func lessOrEqual<T: Comparable>(_ number: Int, _ a: T, _ b: T) -> Bool {
        Self.isActive(number) ? a < b : a <= b
    }
    public static func greater<T: Comparable>(_ number: Int, _ a: T, _ b: T) -> Bool {
        Self.isActive(number) ? a >= b : a > b
    }
    public static func greaterOrEqual<T: Comparable>(_ number: Int, _ a: T, _ b: T) -> Bool {
        Self.isActive(number) ? a > b : a >= b
    }
    public static func equal<T: Equatable>(_ number: Int, _ a: T, _ b: T) -> Bool {
        (a == b) != Self.isActive(number)
    }
    public static func notEqual<T: Equatable>(_ number: Int, _ a: T, _ b: T) -> Bool {
        (a != b) != Self.isActive(number)
    }
    public static func isNil<T>(_ number: Int, _ a: T?, _ b: _OptionalNilComparisonType) -> Bool {
        (a == b) != Self.isActive(number)
    }
    public static func isNotNil<T>(_ number: Int, _ a: T?, _ b: _OptionalNilComparisonType) -> Bool {
        (a != b) != Self.isActive(number)
    }
    public static func and(_ number: Int, _ a: Bool, _ b: @autoclosure () throws -> Bool) rethrows -> Bool {
        Self.isActive(number) ? try a || b() : try a && b()
    }
    public static func or(_ number: Int, _ a: Bool, _ b: @autoclosure () throws -> Bool) rethrows -> Bool {
        Self.isActive(number) ? try a && b() : try a || b()
    }
    public static func not(_ number: Int, _ a: Bool) -> Bool { a == Self.isActive(number) }
    public static func condition(_ number: Int, _ a: Bool) -> Bool { a != Self.isActive(number) }
    public static func literal(_ number: Int, _ a: Bool) -> Bool { a != Self.isActive(number) }

    // MARK: Statements

    /// Whether the statement runs; false if the mutation is active.
    public static func keeps(_ number: Int) -> Bool { !Self.isActive(number) }
    /// The condition of a `guard`, or true if the mutation is active.
    public static func passes(_ number: Int, _ a: Bool) -> Bool { Self.isActive(number) || a }

    // MARK: Arithmetic

    public static func add<T: AdditiveArithmetic>(_ number: Int, _ a: T, _ b: T) -> T {
        Self.isActive(number) ? a - b : a + b
    }
    public static func subtract<T: AdditiveArithmetic>(_ number: Int, _ a: T, _ b: T) -> T {
        Self.isActive(number) ? a + b : a - b
    }
    public static func addOne<T: AdditiveArithmetic>(_ number: Int, _ a: T, _ b: T) -> T {
        if Self.isActive(number + 1) { return a }
        if Self.isActive(number + 2) { return a + b + b }
        return Self.isActive(number) ? a - b : a + b
    }
    public static func subtractOne<T: AdditiveArithmetic>(_ number: Int, _ a: T, _ b: T) -> T {
        if Self.isActive(number + 1) { return a }
        if Self.isActive(number + 2) { return a - b - b }
        return Self.isActive(number) ? a + b : a - b
    }
    public static func addAssign<T: AdditiveArithmetic>(_ number: Int, _ a: inout T, _ b: T) {
        if Self.isActive(number) { a -= b } else { a += b }
    }
    public static func subtractAssign<T: AdditiveArithmetic>(_ number: Int, _ a: inout T, _ b: T) {
        if Self.isActive(number) { a += b } else { a -= b }
    }
    public static func plain<T: FixedWidthInteger>(_ number: Int, _ a: T) -> T { Self.isActive(number) ? a + 1 : a }
    public static func min<T: Comparable>(_ number: Int, _ a: T, _ b: T, _ others: T...) -> T {
        Self.isActive(number)
            ? others.reduce(Swift.max(a, b), Swift.max) : others.reduce(Swift.min(a, b), Swift.min)
    }
    public static func max<T: Comparable>(_ number: Int, _ a: T, _ b: T, _ others: T...) -> T {
        Self.isActive(number)
            ? others.reduce(Swift.min(a, b), Swift.min) : others.reduce(Swift.max(a, b), Swift.max)
    }

    // MARK: Ranges

    public static func range<T: Strideable>(_ number: Int, _ a: T, _ b: T) -> Range<T>
    where T.Stride: SignedInteger {
        a..<(Self.isActive(number) ? b.advanced(by: 1) : b)
    }
    public static func closedRange<T: Strideable>(_ number: Int, _ a: T, _ b: T) -> ClosedRange<T>
    where T.Stride: SignedInteger {
        a...(Self.isActive(number) ? b.advanced(by: -1) : b)
    }
}
