// The guest's image with the toolchain that this commit tries, without what it does not need to fetch something.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { shareOfCommit } from '../../../setup/test/share-of-commit.ts'
import { debianArchive, type LeftOut } from '../../helpers/debian.ts'
import type { TestServer } from '../../helpers/server.ts'
import { layerOf, pushOne } from './image.ts'
import { javaClass } from './java-class.ts'

const TOOLCHAINS = { go: 'golang-1.19-go', cargo: 'cargo', java: 'openjdk-17-jre-headless', chromium: 'chromium' } as const

export type Toolchain = keyof typeof TOOLCHAINS

/** The one of this commit: all of them are an image of two gigabytes, and each takes a minute under emulation. */
export const TRIED = shareOfCommit(Object.keys(TOOLCHAINS) as Toolchain[], 4)

const PACKAGES = ['bash', 'ca-certificates', 'coreutils', 'curl', 'findutils', 'grep', 'openssl', 'sed', ...TRIED.map((name) => TOOLCHAINS[name])]
/** Compilers, and what draws on a screen. */
const WITHOUT: LeftOut = {
  packages: ['binutils', 'ca-certificates-java', 'gcc', 'golang-1.19-src', 'java-common', 'libgl1-mesa-dri', 'libgtk-3-0', 'rustc', 'x11-utils', 'xdg-utils'],
  folders: ['usr/lib/go-1.19/pkg', 'usr/share/X11', 'usr/share/go-1.19']
}

/** Fetches what the image is made of. Where it is made there may be no network. */
export async function fetchToolchains (): Promise<void> {
  await debianArchive(PACKAGES, WITHOUT)
}

/** Gives a server the image; its name there. */
export async function pushToolchains (server: TestServer): Promise<string> {
  return await pushOne(server, [await readFile(await debianArchive(PACKAGES, WITHOUT)), await layerOf(addProgram)], 'clients/toolchains:latest')
}

async function addProgram (root: string): Promise<void> {
  await mkdir(join(root, 'clients'), { recursive: true })
  await writeFile(join(root, 'clients/Get.class'), javaClass())
}
