// ScheduleText: the order as editable text, kept in sync with the canvas. Typed text is read off the GUI thread; while
// it can't be read it stays, with the place underlined and the reason beside its line, whatever happens on the canvas.
// Text that already matches the canvas is left alone.
#pragma once

#include <memory>
#include <optional>

#include <QPlainTextEdit>
#include <QTimer>

#include "schedules/check/validate.h"
#include "widgets/edit/text_sync.h"
#include "widgets/job.h"
#include "widgets/theme.h"

class QLabel;
class QPushButton;

namespace stagewright {

// The field: undo and redo are the editor's, unless typed text is not applied yet.
class ScheduleTextEdit : public QPlainTextEdit {
    Q_OBJECT
public:
    explicit ScheduleTextEdit(QWidget* parent = nullptr);
    bool ownUndo = false;            // typed text is not part of the order yet
    void setRightMargin(int pixels); // space at the right kept free of text
    int rightMargin() const { return viewportMargins().right(); }

signals:
    void undoAsked();
    void redoAsked();
    void leaveAsked(); // Esc

protected:
    void keyPressEvent(QKeyEvent* event) override;
};

class ScheduleText : public QWidget {
    Q_OBJECT
public:
    explicit ScheduleText(QWidget* parent = nullptr);

    // The order on the canvas and its faults. Equal lines are not touched; typed text that is not applied stays.
    void setSchedule(std::shared_ptr<const Schedule> schedule, const Validation& validation);
    void select(OpPosition at); // puts the caret there, unless the field has the focus and the caret is in that op
    void clear();
    void setTheme(const Theme& theme);

    bool inStep() const { return !m_typed; }    // the text matches the canvas
    bool settled() const { return !m_waiting; } // nothing typed is being read
    QString message() const;                    // why it does not, or the first fault of the order
    TextSpan fault() const { return m_fault; }
    QLabel* faultLabel() { return m_bubble; } // beside the faulty line
    ScheduleTextEdit* field() { return m_field; }

protected:
    void resizeEvent(QResizeEvent* event) override;

signals:
    // an order read from typed text; a session is one change
    void typed(const stagewright::Schedule& schedule, int session);
    void caretMoved(stagewright::OpPosition at);
    void undoAsked();
    void redoAsked();
    void leaveAsked();

private:
    void textChanged();
    void read();
    void take(const TypedOrder& order);
    void replaceLines(const QStringList& lines);
    void showFault(const TextSpan& where, const QString& message, const QString& remedy);
    void mark();
    void tellCaret();
    TextSpan spanAt(OpPosition at) const;
    void placeBubble();

    ScheduleTextEdit* m_field;
    QLabel* m_state;
    QLabel* m_bubble;
    QPushButton* m_takeCanvas;
    QTimer m_pause;
    std::shared_ptr<const Schedule> m_schedule;
    std::optional<Schedule> m_read; // the schedule read from the text; nullopt if the text was generated
    Validation m_validation;
    bool m_typed = false;   // the text differs from the canvas
    bool m_writing = false; // this object changes the text
    bool m_waiting = false;
    bool m_unreadable = false;
    Job m_reading;
    int m_session = 1;
    QTimer m_sessionEnd;
    TextSpan m_fault;
    QString m_faultText;
    const Theme* m_theme = &Theme::light();
};

} // namespace stagewright
