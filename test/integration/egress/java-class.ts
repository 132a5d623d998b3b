// A Java program as bytes, so that no compiler of Java is needed, which is far larger than what runs it.

/** What holds a class together: texts, and what refers to them by number. */
class Pool {
  readonly entries: Buffer[] = []

  utf8 (text: string): number {
    return this.#add(1, u2(text.length), Buffer.from(text))
  }

  class (name: string): number {
    return this.#add(7, u2(this.utf8(name)))
  }

  string (text: string): number {
    return this.#add(8, u2(this.utf8(text)))
  }

  field (owner: string, name: string, type: string): number {
    return this.#add(9, u2(this.class(owner)), u2(this.#nameAndType(name, type)))
  }

  method (owner: string, name: string, type: string): number {
    return this.#add(10, u2(this.class(owner)), u2(this.#nameAndType(name, type)))
  }

  #nameAndType (name: string, type: string): number {
    return this.#add(12, u2(this.utf8(name)), u2(this.utf8(type)))
  }

  #add (tag: number, ...parts: readonly Buffer[]): number {
    return this.entries.push(Buffer.concat([Buffer.of(tag), ...parts]))
  }
}

function u2 (value: number): Buffer {
  return Buffer.of(value >> 8, value & 255)
}

function u4 (value: number): Buffer {
  return Buffer.of(0, 0, value >> 8, value & 255)
}

/** The file `Get.class`: prints what is at the URL of its first argument, asked for with `Authorization` as its second says. */
export function javaClass (): Buffer {
  const pool = new Pool()
  const code = Buffer.concat([
    // connection = new URL(args[0]).openConnection()
    Buffer.of(0xbb), u2(pool.class('java/net/URL')), Buffer.of(0x59, 0x2a, 0x03, 0x32), Buffer.of(0xb7), u2(pool.method('java/net/URL', '<init>', '(Ljava/lang/String;)V')),
    Buffer.of(0xb6), u2(pool.method('java/net/URL', 'openConnection', '()Ljava/net/URLConnection;')), Buffer.of(0x4c),
    // connection.setRequestProperty("Authorization", args[1])
    Buffer.of(0x2b, 0x13), u2(pool.string('Authorization')), Buffer.of(0x2a, 0x04, 0x32),
    Buffer.of(0xb6), u2(pool.method('java/net/URLConnection', 'setRequestProperty', '(Ljava/lang/String;Ljava/lang/String;)V')),
    // System.out.write(connection.getInputStream().readAllBytes())
    Buffer.of(0xb2), u2(pool.field('java/lang/System', 'out', 'Ljava/io/PrintStream;')),
    Buffer.of(0x2b, 0xb6), u2(pool.method('java/net/URLConnection', 'getInputStream', '()Ljava/io/InputStream;')),
    Buffer.of(0xb6), u2(pool.method('java/io/InputStream', 'readAllBytes', '()[B')),
    Buffer.of(0xb6), u2(pool.method('java/io/PrintStream', 'write', '([B)V')),
    // System.out.flush()
    Buffer.of(0xb2), u2(pool.field('java/lang/System', 'out', 'Ljava/io/PrintStream;')), Buffer.of(0xb6), u2(pool.method('java/io/PrintStream', 'flush', '()V')),
    Buffer.of(0xb1)
  ])
  // four values on the stack, two variables, no exceptions caught, no attributes
  const body = Buffer.concat([u2(4), u2(2), u4(code.length), code, u2(0), u2(0)])
  const main = Buffer.concat([u2(0x0009), u2(pool.utf8('main')), u2(pool.utf8('([Ljava/lang/String;)V')), u2(1), u2(pool.utf8('Code')), u4(body.length), body])
  const names = [pool.class('Get'), pool.class('java/lang/Object')].map(u2)
  // version 49, the last without maps of the stack; public; no interfaces and no fields
  return Buffer.concat([Buffer.of(0xca, 0xfe, 0xba, 0xbe), u2(0), u2(49), u2(pool.entries.length + 1), ...pool.entries, u2(0x0021), ...names, u2(0), u2(0), u2(1), main, u2(0)])
}
