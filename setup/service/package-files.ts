// Which files of an npm package an installation needs: not what its authors work with, nor documents, a fifth of all files; and its types, a quarter, only where plugins are compiled.

/** at the top of a package */
const FOR_AUTHORS = ['test', 'tests', '__tests__', 'doc', 'docs', 'bench', 'benchmark', 'benchmarks', 'example', 'examples', '.github']
const TYPES = /\.d\.[cm]?ts$/
const DOCUMENT = /\.(md|markdown)$/i
/** must come with each copy */
const LICENCE = /(^|\/)(licen[cs]e|notice|copying|authors)[^/]*$/i

/**
 * @param path relative to the package's folder, of a file or a folder
 * @param withTypes whether code is to be compiled against it
 * @param isCompiled whether the package has a native module, which is compiled already
 */
export function isNeeded (path: string, { withTypes, isCompiled }: { readonly withTypes: boolean, readonly isCompiled: boolean }): boolean {
  if (LICENCE.test(path)) return true
  // Packages inside a package have entries of their own in the lock file.
  if (path === 'node_modules' || path.endsWith('.map') || FOR_AUTHORS.includes(path) || DOCUMENT.test(path)) return false
  return !(isCompiled && isForCompiling(path)) && (withTypes || !TYPES.test(path))
}

/** What was only needed to compile a native module, and intermediate files beside it. */
function isForCompiling (path: string): boolean {
  if (path.startsWith('build/')) return path !== 'build/Release' && !/^build\/Release\/[^/]*\.node$/.test(path)
  return ['binding.gyp', 'src', 'deps'].includes(path)
}
