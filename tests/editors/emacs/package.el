;;; package.el --- Drives perflens.el on the workspace of tests/editors/workspace  -*- lexical-binding: t -*-

;; emacs -Q --batch -l package-init.el -l package.el, in the workspace.

(load (expand-file-name "checks" (file-name-directory load-file-name)) nil t)

(defun heat ()
  "What is drawn in the margin: an alist from lines to blocks."
  (accept-process-output nil 0.1)
  (sort (mapcar (lambda (overlay) (cons (line-number-at-pos (overlay-start overlay)) (overlay-get overlay 'perflens)))
                perflens--overlays)
        (lambda (a b) (< (car a) (car b)))))

(defun heat-of (key)
  "The blocks of the labels of KEY in expected.json."
  (delq nil (mapcar (lambda (pair)
                      (let ((block (substring (cdr pair) 0 1)))
                        (when (member block '("▂" "▄" "▆" "█"))
                          (cons (string-to-number (symbol-name (car pair))) block))))
                    (alist-get key expected))))

(defun becomes (name wanted actual)
  (let (got)
    (check name (wait (lambda () (equal (setq got (funcall actual)) wanted))) (list :wanted wanted :got got))))

(defun run ()
  (find-file "src/main.rs")
  (apply #'eglot (eglot--guess-contact))
  (check "the package attaches" (wait #'perflens--server))
  (becomes "heat in the margin" (heat-of 'before) #'heat)
  (check "the margin is open" (eql left-margin-width 2) left-margin-width)

  (let ((names (mapcar (lambda (each) (plist-get each :name)) (perflens--schema))) missing)
    (dolist (name '("showHotspots" "showCallers" "showActions" "showStatus" "nextHotspot" "previousHotspot" "explain"))
      (unless (member name names) (push name missing)))
    (check "commands are the server's" (null missing) missing))

  (perflens-next)
  (becomes "the next hot spot is the hottest line" 22 (lambda () (accept-process-output nil 0.1) (line-number-at-pos)))
  (let (shown)
    (cl-letf (((symbol-function 'xref-show-xrefs) (lambda (fetch &rest _) (setq shown (funcall fetch)))))
      (perflens "showHotspots")
      (check "the hottest is the first of the list"
             (and shown (= 22 (xref-location-line (xref-item-location (car shown))))
                  (string-match-p "800ms" (xref-item-summary (car shown))))
             shown)
      (perflens "showCallers")
      (check "callers" (and shown (string-match-p "words::group" (xref-item-summary (car shown)))) shown)))
  (perflens "explain")
  (check "an explanation has a window"
         (with-current-buffer "*perflens explain*" (string-match-p "98% placed" (buffer-string)))
         (buffer-list))
  (perflens "showStatus")
  (check "so has the status"
         (with-current-buffer "*perflens status*" (string-match-p "2\\.00s" (buffer-string))))

  (rename-file "../after.pb.gz" "../cpu.pb.gz" t)
  (becomes "the profile written again changes heat" (heat-of 'after) #'heat)
  (perflens "clear")
  (becomes "no profile, no heat" nil #'heat)
  (check "and no margin" (eql left-margin-width 0) left-margin-width)

  (set-buffer-modified-p nil)
  (eglot-shutdown (perflens--server) nil 10)
  (say "done\n"))

(condition-case problem (run) (error (check "the script" nil problem)))
