// The words after `npm run quickstart --`.

export interface QuickstartOptions {
  /** an image to pull instead of the demo image */
  readonly image: string | undefined
  /** the command to run in it instead of the image's own */
  readonly command: readonly string[]
  readonly keep: boolean
  readonly stop: boolean
  /** with `stop`: the run to stop; all without it */
  readonly run: string | undefined
}

export const usage = `npm run quickstart [-- [--keep] [IMAGE [COMMAND...]]]
  boots a demo image, or IMAGE, as a virtual machine, prints what it printed, and removes everything again
  --keep   leaves the server running and says how to talk to it
  --stop [RUN]   ends the servers that --keep has left, or the one of that folder, and removes what they kept`

/** Throws a sentence for people on an option that it does not know. */
export function parseOptions (args: readonly string[]): QuickstartOptions {
  const options = { keep: false, stop: false }
  const words: string[] = []
  for (const arg of args) {
    // npm passes a second `--` on as it is. Behind the image everything belongs to the command.
    if (words.length > 0 && arg !== '--keep') words.push(arg)
    else if (arg === '--') continue
    else if (arg === '--keep') options.keep = true
    else if (arg === '--stop') options.stop = true
    else if (arg.startsWith('-')) throw new Error(`unknown option ${arg}\n${usage}`)
    else words.push(arg)
  }
  if (options.stop) return { ...options, run: words[0], image: undefined, command: [] }
  return { ...options, run: undefined, image: words[0], command: words.slice(1).filter((word, index) => index > 0 || word !== '--') }
}
