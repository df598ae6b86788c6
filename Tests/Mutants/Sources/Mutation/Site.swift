/// A place in a file with its mutations, which one set of edits compiles in.
public struct Site: Hashable {
    public var mutations: [Mutation]
    let edits: [Edit]
}
