;;; perflens.el --- The cost of every line of code, on that line  -*- lexical-binding: t -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "29.1"))
;; Keywords: languages, tools

;;; Commentary:

;; Starts `perflens lsp' by way of Eglot, which draws the costs of lines as inlay hints, and adds
;; what Eglot has no place for: heat in the margin, a list of hot spots, going from one to the next,
;; the server's commands, and new costs when there is a new profile.
;;
;;   (require 'perflens)
;;   (setq perflens-settings '(:source (:file "cpu.pb.gz")))
;;   (perflens-setup)
;;
;; Then `M-x eglot' in a file.  Eglot runs one server per buffer: this is for modes in which you use
;; no other, or for a look at a profile.

;;; Code:

(require 'cl-lib)
(require 'eglot)
(require 'jsonrpc)
(require 'xref)

(defgroup perflens nil "The cost of every line of code." :group 'tools)

(defcustom perflens-command '("perflens" "lsp")
  "The server and its arguments."
  :type '(repeat string))

(defcustom perflens-modes
  '(c-mode c-ts-mode c++-mode c++-ts-mode go-mode go-ts-mode java-mode java-ts-mode js-mode js-ts-mode
           python-mode python-ts-mode ruby-mode ruby-ts-mode rust-mode rust-ts-mode typescript-ts-mode)
  "Modes in which \\[eglot] starts perflens."
  :type '(repeat symbol))

(defcustom perflens-settings nil
  "Settings of the server, such as (:source (:file \"cpu.pb.gz\"))."
  :type 'plist)

(defcustom perflens-heat t
  "Whether heat is drawn in the left margin."
  :type 'boolean)

(defface perflens-heat-1 '((((background dark)) :foreground "#75693a") (t :foreground "#d0b24e"))
  "Lines that cost 1 % and more.")
(defface perflens-heat-2 '((((background dark)) :foreground "#a87d30") (t :foreground "#cf8410"))
  "Lines that cost 3 % and more.")
(defface perflens-heat-3 '((((background dark)) :foreground "#dd7d3c" :weight bold) (t :foreground "#cf560a" :weight bold))
  "Lines that cost 10 % and more.")
(defface perflens-heat-4 '((((background dark)) :foreground "#ff7b72" :weight bold) (t :foreground "#b01020" :weight bold))
  "Lines that cost 30 % and more.")
(defface perflens-better '((((background dark)) :foreground "#3fb9a0") (t :foreground "#0f7b6c"))
  "Lines that cost less than in the base.")

;;;; The server

(defclass perflens-server (eglot-lsp-server) ()
  "The server of a project.")

(cl-defmethod eglot-client-capabilities ((_server perflens-server))
  "What Eglot can do, and what this package does itself: docs/lsp-extensions.md."
  (plist-put (cl-call-next-method) :experimental '(:perflens (:followsChanges t :showsAnswers t))))

(cl-defmethod eglot-initialization-options ((_server perflens-server))
  "Settings come with the first message."
  (or perflens-settings (cl-call-next-method)))

(cl-defmethod eglot-handle-notification ((server perflens-server) (_method (eql perflens/changed)) &key &allow-other-keys)
  "Shows what may be another thing now."
  (dolist (buffer (eglot--managed-buffers server))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        ;; Eglot asks for hints when text is shown, not when it costs something else.
        (when eglot-inlay-hints-mode
          (eglot-inlay-hints-mode -1)
          ;; Nor for those of a region that it asked for last.
          (when (boundp 'eglot--outstanding-inlay-hints-last-region)
            (set 'eglot--outstanding-inlay-hints-last-region nil))
          (eglot-inlay-hints-mode 1))
        (perflens--fetch-heat)))))

(defun perflens--server ()
  "The server of this buffer, or nil."
  (let ((server (eglot-current-server)))
    (and (cl-typep server 'perflens-server) server)))

(defun perflens--ask (method parameters)
  "Ask the server METHOD with PARAMETERS."
  (jsonrpc-request (or (perflens--server) (user-error "No perflens here; M-x eglot starts it")) method parameters))

(defun perflens--run (name &optional arguments)
  "Run the server's command NAME with ARGUMENTS, a plist."
  (perflens--ask :workspace/executeCommand
                 (list :command (concat "perflens." name) :arguments (if arguments (vector arguments) []))))

;;;###autoload
(defun perflens-setup ()
  "Let \\[eglot] start perflens in `perflens-modes'."
  (add-to-list 'eglot-server-programs (cons perflens-modes (cons 'perflens-server perflens-command)))
  (add-hook 'eglot-managed-mode-hook #'perflens--managed))

;;;; Heat

(defvar-local perflens--overlays nil "Those of this buffer.")
(defvar-local perflens--timer nil "Runs when nobody has typed for a moment.")
(defconst perflens--idle 0.3 "Seconds without typing, after which lines are asked for again.")
(defconst perflens--blocks [" " "▂" "▄" "▆" "█"] "Of the levels of heat.")

(defun perflens--managed ()
  "Starts or ends what is shown in a buffer."
  (if (and (eglot-managed-p) (perflens--server))
      (progn
        (add-hook 'after-change-functions #'perflens--edited nil t)
        (perflens--fetch-heat))
    (remove-hook 'after-change-functions #'perflens--edited t)
    (perflens--draw-heat nil)))

(defun perflens--edited (&rest _)
  "Ask for the lines again, once nobody types."
  (when (timerp perflens--timer) (cancel-timer perflens--timer))
  (setq perflens--timer
        (run-with-idle-timer perflens--idle nil
                             (lambda (buffer)
                               (when (buffer-live-p buffer)
                                 (with-current-buffer buffer (perflens--fetch-heat))))
                             (current-buffer))))

(defun perflens--fetch-heat ()
  "Ask for the heat of the lines, and draw it."
  (when (and perflens-heat (perflens--server))
    (eglot--signal-textDocument/didChange)
    (let ((buffer (current-buffer)) (tick (buffer-chars-modified-tick)))
      (jsonrpc-async-request
       (perflens--server) :perflens/heat (list :textDocument (eglot--TextDocumentIdentifier))
       :success-fn (lambda (heat)
                     (when (buffer-live-p buffer)
                       (with-current-buffer buffer
                         ;; An edit meanwhile asks again.
                         (when (= tick (buffer-chars-modified-tick))
                           (perflens--draw-heat (plist-get heat :lines))))))
       :error-fn #'ignore
       :timeout-fn #'ignore))))

(defun perflens--draw-heat (lines)
  "Draw the heat of LINES in the margin; without any the margin closes."
  (mapc #'delete-overlay perflens--overlays)
  (setq perflens--overlays nil)
  (save-excursion
    (save-restriction
      (widen)
      (seq-doseq (line lines)
        (goto-char (point-min))
        (let* ((is-better (eq t (plist-get line :isBetter)))
               (level (plist-get line :level))
               (text (if is-better "▼" (aref perflens--blocks level)))
               (face (if is-better 'perflens-better (intern (format "perflens-heat-%d" level)))))
          (when (and (or is-better (> level 0)) (zerop (forward-line (plist-get line :line))))
            (let ((overlay (make-overlay (point) (point) nil t)))
              (overlay-put overlay 'perflens text)
              (overlay-put overlay 'before-string
                           (propertize " " 'display `((margin left-margin) ,(propertize text 'face face))))
              (push overlay perflens--overlays)))))))
  (let ((width (if perflens--overlays 2 0)))
    (unless (= width (or left-margin-width 0))
      (setq left-margin-width width)
      (dolist (window (get-buffer-window-list nil nil t))
        (set-window-buffer window (current-buffer))))))

;;;; Commands

(defun perflens--schema ()
  "The server's own table of its commands."
  (with-temp-buffer
    (unless (zerop (call-process (car perflens-command) nil '(t nil) nil "schema" "commands"))
      (user-error "%s does not tell its commands" (car perflens-command)))
    (goto-char (point-min))
    (plist-get (json-parse-buffer :object-type 'plist :false-object nil) :commands)))

(defun perflens--place ()
  "File and line of point, as arguments."
  (list :file (plist-get (eglot--TextDocumentIdentifier) :uri) :line (line-number-at-pos nil t)))

(defun perflens--region ()
  "File and lines of the region, as arguments.
What ends before the first character of a line has nothing of it."
  (let* ((start (region-beginning))
         (end (max start (1- (region-end)))))
    (list :file (plist-get (eglot--TextDocumentIdentifier) :uri)
          :line (line-number-at-pos start t)
          :endLine (line-number-at-pos end t))))

(defun perflens--ask-argument (argument)
  "Ask for the value of ARGUMENT."
  (let* ((name (plist-get argument :name))
         (takes (plist-get argument :takes))
         (prompt (format "%s (such as %s): " name (plist-get argument :example)))
         (choices (cond ((equal takes "flag") '("true" "false"))
                        ((listp takes) (append (plist-get takes :choice) nil)))))
    (cond (choices (completing-read prompt choices nil t))
          ((equal name "path") (expand-file-name (read-file-name prompt)))
          (t (read-string prompt)))))

(defun perflens--arguments (command)
  "What COMMAND can't do without: of point, or asked for."
  (let ((place (perflens--place)) given)
    (seq-doseq (argument (plist-get command :arguments))
      (let ((key (intern (concat ":" (plist-get argument :name)))))
        (when (plist-get argument :required)
          (setq given (plist-put given key (or (plist-get place key) (perflens--ask-argument argument)))))))
    given))

(defun perflens--show (name text)
  "Show TEXT in a window called NAME, or where messages are if it is short."
  (if (string-search "\n" text)
      (with-help-window (format "*perflens %s*" name) (princ text))
    (message "%s" text)))

;;;###autoload
(defun perflens (name)
  "Run the server's command NAME, with what it needs."
  (interactive
   (let* ((commands (perflens--schema))
          (titles (mapcar (lambda (each) (cons (plist-get each :name) (plist-get each :title))) commands))
          (completion-extra-properties
           (list :annotation-function (lambda (each) (concat "  " (cdr (assoc each titles)))))))
     (list (completing-read "perflens: " titles nil t))))
  (pcase name
    ("showHotspots" (perflens-hotspots))
    ("showCallers" (perflens-callers))
    ("showActions" (call-interactively #'eglot-code-actions))
    ("copyForAI" (call-interactively #'perflens-copy-for-ai))
    ("showStatus" (perflens-status))
    (_
     (let* ((command (or (seq-find (lambda (each) (equal name (plist-get each :name))) (perflens--schema))
                         (user-error "There is no command %s" name)))
            (answer (perflens--run name (perflens--arguments command))))
       (when (stringp answer) (perflens--show name answer))))))

(defun perflens-next ()
  "Go to the next hot spot: the line that costs next less."
  (interactive)
  (perflens--run "nextHotspot"))

(defun perflens-previous ()
  "Go to the previous hot spot."
  (interactive)
  (perflens--run "previousHotspot"))

(defun perflens--xrefs (rows)
  "ROWS of the server as places to go to."
  (seq-keep (lambda (row)
              (when-let* ((uri (plist-get row :uri)))
                (xref-make (plist-get row :label)
                           (xref-make-file-location (eglot-uri-to-path uri) (or (plist-get row :line) 1) 0))))
            rows))

(defun perflens-hotspots (&optional by)
  "List the lines that cost most; BY function with a prefix argument."
  (interactive (list (and current-prefix-arg "function")))
  (let ((rows (perflens--ask :perflens/hotspots (if by (list :by by) '(:by "line")))))
    (if (seq-empty-p rows)
        (perflens "explain")
      (xref-show-xrefs (lambda () (perflens--xrefs rows)) nil))))

(defun perflens-callers ()
  "List who calls the line of point, and what it calls."
  (interactive)
  (let ((found (perflens--ask :perflens/callers
                              (list :textDocument (eglot--TextDocumentIdentifier) :line (1- (line-number-at-pos nil t))))))
    (xref-show-xrefs (lambda ()
                       (append (perflens--xrefs (plist-get found :callers)) (perflens--xrefs (plist-get found :callees))))
                     nil)))

(defun perflens-status ()
  "Tell what is open, and how much of it is in this workspace."
  (interactive)
  (perflens--show "status"
                  (mapconcat (lambda (folder)
                               (mapconcat #'identity
                                          (append (list (plist-get folder :folder) (plist-get folder :text))
                                                  (plist-get folder :details)
                                                  nil)
                                          "\n"))
                             (perflens--ask :perflens/status nil) "\n\n")))

(defun perflens-copy-for-ai (scope)
  "Put the costs of SCOPE into the kill ring, as a text for an assistant."
  (interactive
   (list (completing-read "Copy the costs of: " '("line" "function" "file" "selection" "workspace" "comparison") nil t
                          (and (use-region-p) "selection"))))
  (let* ((place (cond ((member scope '("workspace" "comparison")) nil)
                      ((and (equal scope "selection") (use-region-p)) (perflens--region))
                      (t (perflens--place))))
         (answer (perflens--run "copyForAI" (append (list :scope scope) place)))
         (text (if (stringp answer) answer (plist-get answer :text))))
    (kill-new text)
    (message "Copied for an assistant")))

(provide 'perflens)
;;; perflens.el ends here
