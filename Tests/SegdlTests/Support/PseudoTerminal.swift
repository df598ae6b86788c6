import Foundation
import Glibc

@testable import segdl

/// A pseudo-terminal in this process, with what is shown on it.
final class PseudoTerminal {
    struct Failure: Error {
        var number = errno
    }

    /// Never shown: marks the end of what was written so far.
    private static let bell: UInt8 = 0x07

    /// `TIOCSPTLCK` and `TIOCGPTN` of ioctl_tty(2), which Swift does not import.
    private static let setLock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430

    /// The side of the program.
    let descriptor: CInt
    let sink: LineSink
    private let controller: CInt
    private(set) var screen: Screen

    init(columns: Int, rows: Int) throws {
        self.controller = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var (isLocked, number): (CInt, CUnsignedInt) = (0, 0)
        guard self.controller >= 0, ioctl(self.controller, Self.setLock, &isLocked) == 0,
            ioctl(self.controller, Self.getNumber, &number) == 0
        else { throw Failure() }
        self.descriptor = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard self.descriptor >= 0 else { throw Failure() }
        var size = winsize(ws_row: UInt16(rows), ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
        guard ioctl(self.controller, UInt(TIOCSWINSZ), &size) == 0 else { throw Failure() }
        self.sink = LineSink(descriptor: self.descriptor)
        self.screen = Screen(columns: columns, rows: rows)
    }

    deinit {
        close(self.descriptor)
        close(self.controller)
    }

    /// Shows what was sent to the sink.
    func update() throws {
        self.sink.send(String(decoding: [Self.bell], as: UTF8.self))
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while bytes.last != Self.bell {
            let count = read(self.controller, &buffer, buffer.count)
            guard count > 0 else { throw Failure() }
            bytes += buffer[..<count]
        }
        self.screen.write(String(decoding: bytes.dropLast(), as: UTF8.self))
    }
}
