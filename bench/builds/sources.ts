// The sources of the benchmark's builds: a base image with gcc, and a program of many files.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { debianArchive } from '../../test/helpers/debian.ts'
import { pushLayout, writeLayout } from '../../test/helpers/oci.ts'
import { tar } from '../../test/helpers/tar.ts'

const PACKAGES = ['bash', 'coreutils', 'gcc', 'libc6-dev']
const FILES = 10
const FUNCTIONS = 25

export const BASE = 'bench/gcc:latest'
export const DOCKERFILE = ['FROM bench/gcc AS build', 'COPY . /src', 'RUN gcc -O2 -static -o /program /src/*.c', 'FROM scratch', 'COPY --from=build /program /program', 'CMD ["/program"]', ''].join('\n')

/** The files of the source, by name. */
export function sourceFiles (): ReadonlyMap<string, string> {
  const files = new Map([['Dockerfile', DOCKERFILE]])
  for (let file = 0; file < FILES; file++) {
    const body = Array.from({ length: FUNCTIONS }, (_, index) => `double f${file}_${index} (double x) { for (int i = 0; i < ${index + 2}; i++) x = x * ${index}.5 / (x + i + ${file + 1}); return x; }`)
    files.set(`part-${file}.c`, `${body.join('\n')}\n`)
  }
  files.set('main.c', '#include <stdio.h>\ndouble f0_1 (double);\nint main (void) { printf("%f\\n", f0_1(1)); return 0; }\n')
  return files
}

export function sourceArchive (): Buffer {
  return gzipSync(tar([...sourceFiles()].map(([path, content]) => ({ path, content }))))
}

/** Pushes the base image to a registry, packed as people push theirs. @param host `host:port` */
export async function pushBase (folder: string, host: string, key: string): Promise<void> {
  const work = await mkdtemp(join(folder, 'base-'))
  try {
    const config = { Env: ['PATH=/usr/bin:/usr/sbin'], Cmd: ['/bin/sh'] }
    const layout = await writeLayout(work, [{ layers: [await readFile(await debianArchive(PACKAGES))], packing: 'gzip', config }])
    await pushLayout(layout, `${host}/${BASE}`, { username: 'key', password: key })
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
