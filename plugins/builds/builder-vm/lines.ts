// A build's output as lines that can be stored and shown: of bounded length, and without characters that control a terminal.
import { StringDecoder } from 'node:string_decoder'

const MAX_LINE_CHARACTERS = 64 * 1024
// Escape sequences: colours (they end in `m`) and all others of this form, then those that set a title and the like, then all other control characters but the tab.
// eslint-disable-next-line no-control-regex
const UNWANTED = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]/g

export interface Lines {
  push (chunk: Buffer): void
  /** Flushes the last line, which may lack an end. */
  end (): void
}

/** Calls `take` with each line. A longer line than the limit becomes several. */
export function createLines (take: (line: string) => void): Lines {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  const add = (text: string): void => {
    const lines = text.split('\n')
    const last = lines.pop() ?? ''
    for (const line of lines) {
      give(rest + line)
      rest = ''
    }
    rest += last
    while (rest.length > MAX_LINE_CHARACTERS) {
      give(rest.slice(0, MAX_LINE_CHARACTERS))
      rest = rest.slice(MAX_LINE_CHARACTERS)
    }
  }
  const give = (line: string): void => {
    // Text after a carriage return replaces the text before it, as on a terminal.
    let end = line.length
    while (line.charAt(end - 1) === '\r') end--
    const last = line.slice(line.lastIndexOf('\r', end - 1) + 1, end).replace(UNWANTED, '').trimEnd()
    for (let from = 0; from === 0 || from < last.length; from += MAX_LINE_CHARACTERS) take(last.slice(from, from + MAX_LINE_CHARACTERS))
  }
  return {
    push: (chunk) => add(decoder.write(chunk)),
    end () {
      add(decoder.end())
      if (rest !== '') give(rest)
      rest = ''
    }
  }
}
