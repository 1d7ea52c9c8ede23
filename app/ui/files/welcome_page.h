// WelcomePage: shown while no run is open: what to do next, with the keys, and the recent files.
#pragma once

#include <QWidget>

class QPushButton;
class QLabel;
class QVBoxLayout;

namespace stagewright {

class WelcomePage : public QWidget {
    Q_OBJECT
public:
    explicit WelcomePage(QWidget* parent = nullptr);
    void setRecent(const QStringList& files);
    void setMessage(const QString& message); // about an open file without runs; empty: the default text
    void setRunsListed(bool listed);         // the list at the left has runs, but none is shown

signals:
    void recordAsked();
    void openAsked();
    void newAsked();
    void lessonsAsked();
    void lookAsked(); // at runs that ship with the program
    void fileChosen(const QString& path);

protected:
    void showEvent(QShowEvent* event) override; // its first button has the keys, not the toolbar

private:
    QVBoxLayout* m_recent;
    QPushButton* m_first = nullptr;
    QWidget* m_recentBox;
    QLabel* m_message;
    QString m_own;
    bool m_listed = false;
};

} // namespace stagewright
