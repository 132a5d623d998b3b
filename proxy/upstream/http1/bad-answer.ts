/** What an origin sent is no HTTP/1.1, or could be read in two ways. The connection that it came over is not used again. */
export class BadAnswer extends Error {}
