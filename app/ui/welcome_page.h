// WelcomePage: what the window shows while no run is open: what one can do next, with the keys, and the files of late.
#pragma once

#include <QWidget>

class QLabel;
class QVBoxLayout;

namespace stagewright {

class WelcomePage : public QWidget {
    Q_OBJECT
public:
    explicit WelcomePage(QWidget* parent = nullptr);
    void setRecent(const QStringList& files);
    void setMessage(const QString& message); // of an open file without runs; empty: the usual words
    void setRunsListed(bool listed);         // the list beside it holds runs, none of which is shown

signals:
    void recordAsked();
    void openAsked();
    void newAsked();
    void lessonsAsked();
    void fileChosen(const QString& path);

private:
    QVBoxLayout* m_recent;
    QWidget* m_recentBox;
    QLabel* m_message;
    QString m_own;
    bool m_listed = false;
};

} // namespace stagewright
