// Search from files. A browser starts no worker for a page opened as file://, so there the theme's
// search runs in a hidden frame instead, which answers messages as a worker does.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.document.open();
      inside.document.write(
        "<script>postMessage = message => parent.postMessage({ from: 'search', message }, '*')</script>" +
          `<script src="${new URL(url, document.baseURI)}"></script>`,
      );
      inside.document.close();
      this.ready = new Promise((done) => inside.addEventListener("load", done));
      this.inside = inside;
      window.addEventListener("message", ({ source, data }) => {
        if (source === inside && data.from === "search") {
          this.dispatchEvent(new MessageEvent("message", { data: data.message }));
        }
      });
    }

    postMessage(data) {
      this.ready.then(() => {
        this.inside.dispatchEvent(new MessageEvent("message", { data }));
      });
    }
  };
}
