// Requests that a test holds, to do something while one is under way: kill who asked it, for example.
//
// A held request is the Nth that fits (`method`, and `path` as a regular expression, where they are given): before it has any
// effect, or with `after` when it has had it and only the answer is missing. Once released, one of the API's that was held before
// its effect is dropped, as if it had been lost on the way; git's goes on, and so does an answer.

export class Stops {
  #stop = null;

  // Answers when the request is held, or { stopped: false } when it is released before one was.
  at({ request, method, path, after = false }) {
    this.release();
    const stop = { left: request, method, path: path && new RegExp(path), after };
    stop.released = new Promise((done) => { stop.release = done; });
    this.#stop = stop;
    return new Promise((done) => { stop.tell = done; });
  }

  release() {
    this.#stop?.tell({ stopped: false });
    this.#stop?.release();
    this.#stop = null;
  }

  // True when the request was dropped.
  async arrived(request, response, isGit) {
    const stop = this.#stop;
    const fits = stop && stop.left > 0 && (!stop.method || stop.method === request.method) && (!stop.path || stop.path.test(request.url));
    if (!fits || --stop.left > 0) return false;
    const held = () => stop.tell({ stopped: true, method: request.method, path: request.url });
    if (!stop.after) {
      held();
      await stop.released;
      if (!isGit) request.socket.destroy();
      return !isGit;
    }
    const end = response.end.bind(response);
    response.end = (...words) => {
      held();
      stop.released.then(() => end(...words));
      return response;
    };
    return false;
  }
}
